"""Operations of a training step: gradients, batch norm in training, the loss."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases


def result(dtype: str, sizes: list[int]) -> dict[str, Any]:
    """Describe a contiguous result."""
    return {"dtype": dtype, "sizes": sizes, "strides": opcases.contiguous(sizes)}


def add() -> None:
    """Add all cases."""
    counter()
    for dtype in FLOATS:
        elementwise(dtype)
        pooling(dtype)
        norms(dtype)
        loss(dtype)
        convolutions(dtype)
        products(dtype)


def counter() -> None:
    """Add num_batches_tracked's sum and the first gradient."""
    count = tensor("int64", [], 1, "small")
    case(
        "add.i64.counter",
        "aten::add_.Tensor",
        [("self", count), ("other", 1), ("alpha", 1)],
        True,
    )


def elementwise(dtype: str) -> None:
    """Add relu's gradient and the mean's."""
    for fill, count in (("spread", 1003), ("edges", 484)):
        arguments: list[Argument] = [
            ("grad_output", tensor(dtype, [count], 1, fill)), ("self", tensor(dtype, [count], 0, fill)), ("threshold", 0),
        ]  # fmt: skip
        case(
            f"threshold_backward.{SHORT[dtype]}.{fill}",
            "aten::threshold_backward",
            arguments,
            True,
        )
    expanded = tensor(dtype, [4, 64, 7, 7], 1, strides=[64, 1, 0, 0])
    case(
        f"div.{SHORT[dtype]}.expanded",
        "aten::div.Scalar",
        [("self", expanded), ("other", 49)],
        True,
    )
    rows: list[Argument] = [
        ("self", tensor(dtype, [16, 1000])),
        ("dim", [0]),
        ("keepdim", True),
        ("dtype", None),
    ]
    case(f"sum.{SHORT[dtype]}.rows", "aten::sum.dim_IntList", rows, True)


def pooling(dtype: str) -> None:
    """Add max pooling's gradient; any indices will do."""
    for name, sizes, out, window in (
        ("resnet", [2, 3, 12, 14], [2, 3, 6, 7], ([3, 3], [2, 2], [1, 1], [1, 1])),
        ("overlapping", [1, 2, 5, 6], [1, 2, 5, 6], ([5, 5], [1, 1], [2, 2], [1, 1])),
        ("dilated", [2, 2, 9, 9], [2, 2, 5, 5], ([3, 3], [1, 1], [0, 0], [2, 2])),
    ):
        kernel, stride, padding, dilation = window
        arguments: list[Argument] = [
            ("grad_output", tensor(dtype, out)), ("self", tensor(dtype, sizes, 2)), ("kernel_size", kernel),
            ("stride", stride), ("padding", padding), ("dilation", dilation), ("ceil_mode", False),
            ("indices", tensor("int64", out, 3, "small")),
        ]  # fmt: skip
        operation = "aten::max_pool2d_with_indices_backward"
        case(
            f"max_pool2d_backward.{SHORT[dtype]}.{name}",
            operation,
            arguments,
            True,
            [result(dtype, sizes)],
        )


def norms(dtype: str) -> None:
    """Add PyTorch's own batch norm in training; cuDNN's bytes of reserve are not known beforehand."""
    for name, sizes in (
        ("plane_of_a_warp", [3, 4, 5, 5]),
        ("several_images", [20, 3, 7, 7]),
        ("many_pixels", [2, 3, 56, 56]),
        ("batch_16", [16, 8, 28, 28]),
    ):
        channels, short = sizes[1:2], SHORT[dtype]
        vector = result("float32", channels)
        forward: list[Argument] = [
            ("input", tensor(dtype, sizes)),
            ("weight", tensor("float32", channels, 2)), ("bias", tensor("float32", channels, 3)),
            ("running_mean", tensor("float32", channels, 4)), ("running_var", tensor("float32", channels, 5, "positive")),
            ("training", True), ("momentum", 0.1), ("eps", 1e-5),
        ]  # fmt: skip
        results = [result(dtype, sizes), vector, vector]
        written = ["running_mean", "running_var"]
        # 1/sqrt has other bits on a CPU.
        case(
            f"native_batch_norm.{short}.train.{name}",
            "aten::native_batch_norm",
            forward,
            False,
            results,
            written,
        )
        backward: list[Argument] = [
            ("grad_out", tensor(dtype, sizes, 6)), ("input", tensor(dtype, sizes)),
            ("weight", tensor("float32", channels, 2)),
            ("running_mean", tensor("float32", channels, 4)), ("running_var", tensor("float32", channels, 5, "positive")),
            ("save_mean", tensor("float32", channels, 7)), ("save_invstd", tensor("float32", channels, 8, "positive")),
            ("train", True), ("eps", 1e-5), ("output_mask", [True, True, True]),
        ]  # fmt: skip
        case(
            f"native_batch_norm_backward.{short}.{name}",
            "aten::native_batch_norm_backward",
            backward,
            True,
            results,
        )


def loss(dtype: str) -> None:
    """Add log-softmax, the negative log-likelihood, and their gradients."""
    short = SHORT[dtype]
    for width in (7, 33, 100, 1000):
        sizes = [5, width]
        forward: list[Argument] = [
            ("self", tensor(dtype, sizes)),
            ("dim", 1),
            ("half_to_float", False),
        ]
        case(
            f"log_softmax.{short}.{width}",
            "aten::_log_softmax",
            forward,
            False,
            [result(dtype, sizes)],
        )
        backward: list[Argument] = [
            ("grad_output", tensor(dtype, sizes)), ("output", tensor(dtype, sizes, 2)),
            ("dim", 1), ("input_dtype", {"as": dtype}),
        ]  # fmt: skip
        operation = "aten::_log_softmax_backward_data"
        case(
            f"log_softmax_backward.{short}.{width}",
            operation,
            backward,
            False,
            [result(dtype, sizes)],
        )
    for rows in (4, 16, 100, 800):
        inputs: list[Argument] = [
            ("self", tensor(dtype, [rows, 10])), ("target", tensor("int64", [rows], 2, "small")), ("weight", None),
            ("reduction", 1), ("ignore_index", 3),
        ]  # fmt: skip
        scalar = result(dtype, [])
        case(
            f"nll_loss.{short}.{rows}",
            "aten::nll_loss_forward",
            inputs,
            True,
            [scalar, scalar],
        )
        gradient = [
            ("grad_output", tensor(dtype, [], 4)),
            *inputs,
            ("total_weight", tensor(dtype, [], 5, "positive")),
        ]
        case(
            f"nll_loss_backward.{short}.{rows}",
            "aten::nll_loss_backward",
            gradient,
            True,
            [result(dtype, [rows, 10])],
        )


def convolutions(dtype: str) -> None:
    """Add gradients of convolutions: shapes of resnet-18."""
    for name, x, weight, out, stride, padding, mask in (
        (
            "first",
            [4, 3, 64, 64],
            [64, 3, 7, 7],
            [4, 64, 32, 32],
            2,
            3,
            [False, True, False],
        ),
        (
            "3x3",
            [4, 64, 16, 16],
            [64, 64, 3, 3],
            [4, 64, 16, 16],
            1,
            1,
            [True, True, False],
        ),
        (
            "3x3_stride_2",
            [4, 64, 16, 16],
            [128, 64, 3, 3],
            [4, 128, 8, 8],
            2,
            1,
            [True, True, False],
        ),
        (
            "1x1_stride_2",
            [4, 64, 16, 16],
            [128, 64, 1, 1],
            [4, 128, 8, 8],
            2,
            0,
            [True, True, False],
        ),
        (
            "with_bias",
            [2, 8, 9, 9],
            [12, 8, 3, 3],
            [2, 12, 9, 9],
            1,
            1,
            [True, True, True],
        ),
    ):
        arguments: list[Argument] = [
            ("grad_output", tensor(dtype, out)), ("input", tensor(dtype, x, 2)), ("weight", tensor(dtype, weight, 3)),
            ("bias_sizes", [weight[0]] if mask[2] else [0]), ("stride", [stride] * 2), ("padding", [padding] * 2),
            ("dilation", [1, 1]), ("transposed", False), ("output_padding", [0, 0]), ("groups", 1), ("output_mask", mask),
        ]  # fmt: skip
        results = [
            result(dtype, sizes) if wanted else None
            for sizes, wanted in zip((x, weight, weight[:1]), mask, strict=True)
        ]
        case(
            f"convolution_backward.{SHORT[dtype]}.{name}",
            "aten::convolution_backward",
            arguments,
            False,
            results,
        )


def products(dtype: str) -> None:
    """Add the gradients of a linear layer."""
    for rows in (1, 4, 16):
        grad, turned = (
            tensor(dtype, [rows, 1000]),
            tensor(dtype, [1000, rows], 1, strides=[1, 1000]),
        )
        case(
            f"mm.{SHORT[dtype]}.input.{rows}",
            "aten::mm",
            [("self", grad), ("mat2", tensor(dtype, [1000, 512], 2))],
            False,
        )
        case(
            f"mm.{SHORT[dtype]}.weight.{rows}",
            "aten::mm",
            [("self", turned), ("mat2", tensor(dtype, [rows, 512], 3))],
            False,
        )
