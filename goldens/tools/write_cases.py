"""Write goldens/ops/cases.json: operations on small inputs, with every path of a kernel reached.

Run it where samebits_reference is installed; a CPU is enough: torch gives the geometry of the results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import training_cases

from samebits_reference import opcases

FLOATS = ("float32", "bfloat16", "float16")
SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}

Argument = tuple[str, Any]
cases: list[dict[str, Any]] = []


def tensor(
    dtype: str,
    sizes: list[int],
    seed: int = 1,
    fill: str = "spread",
    strides: list[int] | None = None,
    offset: int = 0,
) -> dict[str, Any]:
    """Describe an input."""
    spec: dict[str, Any] = {"dtype": dtype, "sizes": sizes}
    if strides:
        spec["strides"] = strides
    if offset:
        spec["offset"] = offset
    return spec | {"fill": fill, "seed": seed}


def case(
    name: str,
    operation: str,
    arguments: list[Argument],
    exact: bool,
    results: list[Any] | None = None,
    writes: list[str] | None = None,
) -> None:
    """Add a case; results that are not given are those of the CPU, which cannot run the others."""
    only = {"cuda_only": True} if results else {}
    if results is None:
        made = opcases.Case("", name, operation, arguments, [])
        out, values = opcases.run(made, torch.device("cpu"))
        returned = {id(value): key for key, value in values.items() if isinstance(value, torch.Tensor)}
        results = [returned.get(id(result)) or opcases.geometry(result) for result in out]
    if any(case["name"] == name for case in cases):
        raise ValueError(f"two cases are called {name}")
    cases.append(
        {
            "name": name,
            "operation": operation,
            "exact_on_host": exact,
            **only,
            "arguments": [list(argument) for argument in arguments],
            "results": results,
            **({"writes": writes} if writes else {}),
        }
    )


def elementwise() -> None:
    """Add sums, products, activations."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        x, y = tensor(dtype, [1003]), tensor(dtype, [1003], 2)
        for name, more in (("add", [("alpha", 1)]), ("sub", [("alpha", 1)]), ("mul", []), ("div", [])):
            operation = f"aten::{name}.Tensor"
            case(f"{name}.{short}", operation, [("self", x), ("other", y), *more], True)
            for fill, count, exact in (("edges", 484, False), ("finite", 324, True)):
                pair = [("self", tensor(dtype, [count], 0, fill)), ("other", tensor(dtype, [count], 1, fill))]
                case(f"{name}.{short}.{fill}", operation, [*pair, *more], exact and name != "div")
        case(f"add.{short}.alpha", "aten::add.Tensor", [("self", x), ("other", y), ("alpha", 0.3)], True)
        case(f"add.{short}.number", "aten::add.Tensor", [("self", x), ("other", 0.1), ("alpha", 1)], True)
        case(f"mul.{short}.number", "aten::mul.Tensor", [("self", x), ("other", 0.1)], True)
        case(f"add.{short}.in_place", "aten::add_.Tensor", [("self", x), ("other", y), ("alpha", 1)], True)
        channel = tensor(dtype, [5, 1, 1], 3)
        image = tensor(dtype, [2, 5, 6, 7])
        case(f"add.{short}.broadcast", "aten::add.Tensor", [("self", image), ("other", channel), ("alpha", 1)], True)
        part = tensor(dtype, [2, 5, 6, 7], 4, strides=[420, 42, 7, 1], offset=210)
        case(f"mul.{short}.strided", "aten::mul.Tensor", [("self", image), ("other", part)], True)
        turned = tensor(dtype, [2, 5, 6, 7], 4, strides=[210, 1, 35, 5])
        case(f"add.{short}.layouts", "aten::add.Tensor", [("self", turned), ("other", image), ("alpha", 1)], True)
        for name in ("relu", "relu_", "silu", "silu_", "sigmoid"):
            for fill, count in (("wide", 1003), ("edges", 22)):
                # What is done with a NaN's bits differs between CPU and GPU.
                exact = name.startswith("relu") and fill == "wide"
                case(f"{name}.{short}.{fill}", f"aten::{name}", [("self", tensor(dtype, [count], 0, fill))], exact)
        case(f"silu.{short}.strided", "aten::silu", [("self", tensor(dtype, [40, 30], strides=[1, 40]))], False)
    mixed = [("self", tensor("bfloat16", [4, 5, 6])), ("other", tensor("float32", [5, 6], 2))]
    case("add.bf16_f32", "aten::add.Tensor", [*mixed, ("alpha", 1)], True)
    case("mul.f32_bf16", "aten::mul.Tensor", [("self", mixed[1][1]), ("other", mixed[0][1])], True)


def copies() -> None:
    """Add conversions, layouts, concatenation."""
    rest: list[Argument] = [("layout", None), ("device", None), ("pin_memory", None), ("non_blocking", False)]
    for source, target in (("float32", "bfloat16"), ("float32", "float16"), ("bfloat16", "float32"), ("float16", "float32")):
        for fill, sizes, strides in (("bits", [4001], None), ("edges", [22], None), ("spread", [40, 50], [1, 40])):
            x = tensor(source, sizes, 0, fill, strides)
            arguments = [("self", x), ("dtype", {"as": target}), *rest, ("memory_format", None)]
            name = f"to.{SHORT[source]}_{SHORT[target]}.{fill}"
            case(name, "aten::_to_copy", arguments, True)
    for dtype in ("float32", "bfloat16"):
        short = SHORT[dtype]
        last = tensor(dtype, [2, 5, 4, 3], strides=[60, 1, 15, 5])
        arguments = [("self", last), ("memory_format", {"memory_format": "contiguous"})]
        case(f"clone.{short}.contiguous", "aten::clone", arguments, True)
        part = tensor(dtype, [2, 8, 5, 6], 2, strides=[480, 30, 6, 1], offset=240)
        whole = tensor(dtype, [2, 8, 5, 6], 3)
        case(f"cat.{short}.channels", "aten::cat", [("tensors", [part, whole, part]), ("dim", 1)], True)
        case(f"cat.{short}.images", "aten::cat", [("tensors", [whole, part]), ("dim", 0)], True)
        flat = [tensor(dtype, [2, 9, 35], 4), tensor(dtype, [2, 9, 12], 5), tensor(dtype, [2, 9, 3], 6)]
        case(f"cat.{short}.last", "aten::cat", [("tensors", flat), ("dim", 2)], True)


def images() -> None:
    """Add pooling and resampling."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        for layout, strides in (("rows", None), ("channels_last", [432, 1, 54, 6])):
            x = tensor(dtype, [2, 6, 8, 9], strides=strides)
            windows = (("5x5", 5, 1, 2, False), ("3x3", 3, 2, 1, False), ("2x2", 2, 2, 0, True))
            for name, kernel, stride, padding, ceil in windows:
                arguments: list[Argument] = [
                    ("self", x), ("kernel_size", [kernel, kernel]), ("stride", [stride, stride]),
                    ("padding", [padding, padding]), ("dilation", [1, 1]), ("ceil_mode", ceil),
                ]  # fmt: skip
                case(f"max_pool2d.{short}.{layout}.{name}", "aten::max_pool2d_with_indices", arguments, True)
            pools = (("2x2", 2, 1, 0, True, None), ("3x3", 3, 2, 1, False, None), ("divided", 3, 2, 1, True, 7))
            for name, kernel, stride, padding, include, divisor in pools:
                arguments = [
                    ("self", x), ("kernel_size", [kernel, kernel]), ("stride", [stride, stride]),
                    ("padding", [padding, padding]), ("ceil_mode", False), ("count_include_pad", include),
                    ("divisor_override", divisor),
                ]  # fmt: skip
                case(f"avg_pool2d.{short}.{layout}.{name}", "aten::avg_pool2d", arguments, True)
            for name, sizes, scale in (("twice", [16, 18], 2.0), ("to_size", [11, 7], None)):
                arguments = [("self", x), ("output_size", sizes), ("scales_h", scale), ("scales_w", scale)]
                case(f"upsample_nearest2d.{short}.{layout}.{name}", "aten::upsample_nearest2d", arguments, True)


def reductions() -> None:
    """Add sums, means and softmax, whose order depends on sizes, strides and alignment."""
    shapes: list[tuple[str, list[int], list[int] | None, int, list[int] | None, bool]] = [
        ("pixels", [1, 48, 20, 20], None, 0, [-1, -2], True),
        ("vectors", [5, 405], None, 0, [1], False),
        ("vectors_misaligned", [5, 405], None, 1, [1], False),
        ("vectors_over_warps", [3, 9001], None, 0, [1], False),
        ("vectors_over_blocks", [100003], None, 3, [0], False),
        ("short", [7, 3], None, 0, [1], False),
        ("four_outputs", [1, 4, 16, 84], None, 0, [2], False),
        ("two_outputs", [2, 16, 42], None, 0, [1], False),
        ("one_output", [2, 19, 7], None, 0, [1], True),
        ("outputs_misaligned", [19, 8], None, 1, [0], False),
        ("outputs_over_warps", [3000, 8], None, 0, [0], False),
        ("outputs_over_blocks", [30000, 4], None, 0, [0], False),
        ("outer_and_inner", [6, 5, 7, 3], None, 0, [0, 2], False),
        ("images_and_pixels", [4, 5, 9, 11], None, 0, [0, 2, 3], False),
        ("channels_last", [2, 8, 5, 6], [240, 1, 48, 8], 0, [2, 3], True),
        ("gaps", [6, 200], [256, 1], 0, [1], False),
        ("everything", [3, 50, 70], None, 0, None, False),
    ]
    for name, sizes, strides, offset, dims, keepdim in shapes:
        for dtype, out in (*((dtype, dtype) for dtype in FLOATS), ("bfloat16", "float32"), ("float16", "float32")):
            short = SHORT[dtype] + (f"_{SHORT[out]}" if out != dtype else "")
            for operation in ("sum.dim_IntList", "mean.dim"):
                arguments: list[Argument] = [
                    ("self", tensor(dtype, sizes, 7, strides=strides, offset=offset)), ("dim", dims), ("keepdim", keepdim),
                    ("dtype", {"as": out} if out != dtype else None),
                ]  # fmt: skip
                case(f"{operation.partition('.')[0]}.{short}.{name}", f"aten::{operation}", arguments, True)
    for elements in (1 << 20, 3_000_001):
        arguments = [("self", tensor("float32", [elements], 8)), ("dim", None), ("keepdim", False), ("dtype", None)]
        case(f"sum.f32.{elements}", "aten::sum.dim_IntList", arguments, True)
    for dtype in FLOATS:
        for name, sizes, strides, offset, dim in (
            ("spatial", [1, 4, 16, 84], None, 0, 2),
            ("spatial_shared", [2, 100, 50], None, 0, 1),
            ("rows_1", [7, 1], None, 0, 1),
            ("rows_5", [50, 5], None, 0, -1),
            ("rows_33", [9, 33], None, 0, 1),
            ("rows_200", [5, 200], None, 0, 1),
            ("rows_1000", [3, 1000], None, 0, 1),
            ("rows_2048", [2, 2048], None, 0, 1),
            ("elements", [2, 2500], None, 0, 1),
            ("vectors", [2, 9232], None, 0, 1),
            ("vectors_from_aligned", [2, 9223], None, 1, 1),
            ("long", [1, 28000], None, 0, 1),
            ("transposed", [6, 40], [1, 6], 0, 1),
        ):
            x = tensor(dtype, sizes, 9, strides=strides, offset=offset)
            arguments = [("self", x), ("dim", dim), ("half_to_float", False)]
            case(f"softmax.{SHORT[dtype]}.{name}", "aten::_softmax", arguments, False)
        for width in (22, 3000):
            x = tensor(dtype, [2, width], 0, "edges")
            arguments = [("self", x), ("dim", 1), ("half_to_float", False)]
            case(f"softmax.{SHORT[dtype]}.edges_{width}", "aten::_softmax", arguments, False)
        # Exponentials that are denormal: the one rounding that tells the kernels apart.
        arguments = [("self", tensor(dtype, [60, 64, 3], 10, "wide")), ("dim", 1), ("half_to_float", False)]
        case(f"softmax.{SHORT[dtype]}.denormal", "aten::_softmax", arguments, False)
    for name, sizes in (("rows", [3, 100]), ("spatial", [2, 16, 5]), ("vectors", [2, 4096])):
        # The CPU has no such conversion.
        arguments = [("self", tensor("float16", sizes, 9)), ("dim", 1), ("half_to_float", True)]
        results = [{"dtype": "float32", "sizes": sizes, "strides": opcases.contiguous(sizes)}]
        case(f"softmax.f16_f32.{name}", "aten::_softmax", arguments, False, results)


def convolutions() -> None:
    """Add convolutions of cuDNN, and depthwise ones."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        for name, *geometry in (
            ("stem", [1, 3, 64, 64], None, 0, [16, 3, 3, 3], 2, 1, 1, 1, False),
            ("3x3", [2, 16, 20, 20], None, 0, [32, 16, 3, 3], 1, 1, 1, 1, False),
            ("3x3_stride_2", [1, 32, 21, 21], None, 0, [32, 32, 3, 3], 2, 1, 1, 1, True),
            ("1x1", [1, 64, 20, 20], None, 0, [32, 64, 1, 1], 1, 0, 1, 1, True),
            ("1x1_batch", [4, 48, 10, 10], None, 0, [24, 48, 1, 1], 1, 0, 1, 1, False),
            ("7x7", [1, 3, 40, 40], None, 0, [64, 3, 7, 7], 2, 3, 1, 1, False),
            ("part", [4, 16, 10, 10], [3200, 100, 10, 1], 1600, [16, 16, 3, 3], 1, 1, 1, 1, False),
            ("part_of_one", [1, 16, 10, 10], [3200, 100, 10, 1], 1600, [16, 16, 3, 3], 1, 1, 1, 1, False),
            ("misaligned", [1, 8, 9, 9], None, 1, [8, 8, 3, 3], 1, 1, 1, 1, False),
            ("dilated", [1, 16, 16, 16], None, 0, [16, 16, 3, 3], 1, 2, 2, 1, False),
            ("groups", [1, 32, 12, 12], None, 0, [32, 8, 3, 3], 1, 1, 1, 4, True),
            ("channels_last", [2, 16, 12, 12], [2304, 1, 192, 16], 0, [32, 16, 3, 3], 1, 1, 1, 1, True),
        ):
            convolution(f"convolution.{short}.{name}", dtype, *geometry, exact=False)
        for name, x, w, stride, padding, dilation, bias in (
            ("3x3", [2, 8, 13, 11], [8, 1, 3, 3], 1, 1, 1, False),
            ("5x5", [1, 12, 15, 15], [12, 1, 5, 5], 2, 2, 1, True),
            ("7x7", [1, 8, 14, 14], [8, 1, 7, 7], 1, 3, 1, True),
            ("dilated", [1, 8, 14, 14], [8, 1, 3, 3], 1, 2, 2, False),
            ("two_filters", [1, 6, 10, 10], [12, 1, 3, 3], 1, 1, 1, True),
        ):
            geometry = [x, None, 0, w, stride, padding, dilation, x[1], bias]
            convolution(f"depthwise.{short}.{name}", dtype, *geometry, exact=True)
    geometry = [[1, 32, 16, 16], None, 0, [32, 1, 3, 3], 1, 1, 1, 32, False]
    convolution("depthwise.f16.cudnn", "float16", *geometry, exact=False)
    geometry = [[2, 8, 12, 12], [1152, 1, 96, 8], 0, [8, 1, 3, 3], 1, 1, 1, 8, False]
    convolution("depthwise.f32.channels_last", "float32", *geometry, exact=False)
    line: list[Argument] = [
        ("input", tensor("float32", [2, 8, 50], 1)), ("weight", tensor("float32", [16, 8, 5], 2)), ("bias", None),
        ("stride", [2]), ("padding", [2]), ("dilation", [1]), ("transposed", False), ("output_padding", [0]), ("groups", 1),
    ]  # fmt: skip
    case("convolution.f32.one_dimension", "aten::convolution", line, False)


def convolution(
    name: str, dtype: str, x: list[int], strides: list[int] | None, offset: int, w: list[int], stride: int, padding: int,
    dilation: int, groups: int, bias: bool, *, exact: bool,
) -> None:  # fmt: skip
    """Add a convolution."""
    arguments: list[Argument] = [
        ("input", tensor(dtype, x, 1, strides=strides, offset=offset)), ("weight", tensor(dtype, w, 2)),
        ("bias", tensor(dtype, [w[0]], 3) if bias else None), ("stride", [stride, stride]), ("padding", [padding, padding]),
        ("dilation", [dilation, dilation]), ("transposed", False), ("output_padding", [0, 0]), ("groups", groups),
    ]  # fmt: skip
    case(name, "aten::convolution", arguments, exact)


def norms() -> None:
    """Add batch norms in evaluation, of PyTorch and of cuDNN, with variances that divide exactly and with any."""
    for dtype in FLOATS:
        for name, sizes, strides in (
            ("packs", [2, 24, 8, 16], None),
            ("elements", [3, 13, 5, 7], None),
            ("large", [1, 16, 40, 40], None),
            ("channels_last", [2, 24, 6, 5], [720, 1, 120, 24]),
            ("sequence", [2, 5, 33], None),
            ("many_channels", [1, 512, 7, 7], None),
        ):
            for variance in ("quarters", "positive"):
                norm(f"{SHORT[dtype]}.{name}.{variance}", dtype, sizes, strides, variance)
        norm(f"{SHORT[dtype]}.edges.quarters", dtype, [1, 4, 11, 22], None, "quarters", "edges")


def norm(name: str, dtype: str, sizes: list[int], strides: list[int] | None, variance: str, fill: str = "spread") -> None:
    """Add a batch norm, natively and by cuDNN where PyTorch may give it to cuDNN."""
    channels = sizes[1]
    eps = 2.0**-10 if variance == "quarters" else 1e-3
    parameters: list[Argument] = [
        ("input", tensor(dtype, sizes, 0 if fill == "edges" else 1, fill, strides)),
        ("weight", tensor("float32", [channels], 2)), ("bias", tensor("float32", [channels], 3)),
        ("running_mean", tensor("float32", [channels], 4)), ("running_var", tensor("float32", [channels], 5, variance)),
        ("training", False),
    ]  # fmt: skip
    result = {"dtype": dtype, "sizes": sizes, "strides": strides or opcases.contiguous(sizes)}
    saved = {"dtype": "float32", "sizes": [channels], "strides": [1]}
    exact = variance == "quarters" and fill != "edges"
    native = [*parameters, ("momentum", 0.1), ("eps", eps)]
    case(f"native_batch_norm.{name}", "aten::native_batch_norm", native, exact, [result, saved, saved])
    if dtype != "bfloat16":
        cudnn = [*parameters, ("exponential_average_factor", 0.1), ("epsilon", eps)]
        none = {"dtype": "float32", "sizes": [0], "strides": [1]}
        results = [result, none, none, none | {"dtype": "uint8"}]
        # The CPU has one order of operations, cuDNN another one for channels-last tensors.
        case(f"cudnn_batch_norm.{name}", "aten::cudnn_batch_norm", cudnn, exact and strides is None, results)


def products() -> None:
    """Add linear layers."""
    for dtype in FLOATS:
        for name, rows, depth, columns, turned in (
            ("one_row", 1, 512, 1000, True),
            ("four_rows", 4, 512, 1000, True),
            ("many_rows", 77, 96, 40, True),
            ("row_major", 16, 64, 48, False),
        ):
            arguments: list[Argument] = [
                ("self", tensor(dtype, [columns], 1)), ("mat1", tensor(dtype, [rows, depth], 2)),
                ("mat2", tensor(dtype, [depth, columns], 3, strides=[1, depth] if turned else None)),
                ("beta", 1), ("alpha", 1),
            ]  # fmt: skip
            case(f"addmm.{SHORT[dtype]}.{name}", "aten::addmm", arguments, False)


def main() -> None:
    """Write the file."""
    for part in (elementwise, copies, images, reductions, convolutions, norms, products):
        part()
    training_cases.add(case)
    path = Path(__file__).parents[1] / "ops" / "cases.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"schema": {opcases.SCHEMA}, "cases": [\n{lines}\n]}}\n', encoding="ascii")
    print(f"{len(cases)} cases: {path}")


if __name__ == "__main__":
    main()
