"""Batch norms in evaluation in further forms: one pixel an image, a matrix, channels-last with a remainder, wide ranges."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases


def add() -> None:
    """Add native batch norms, and those that PyTorch gives to cuDNN."""
    for dtype in FLOATS:
        for name, sizes, strides in (
            ("pixel", [1, 256, 1, 1], None),
            ("pixels", [5, 48, 1, 1], None),
            ("one_channel", [2, 1, 9, 8], None),
            ("line", [1, 24, 1, 40], None),
            ("last_odd", [1, 27, 9, 9], [2187, 1, 243, 27]),
            ("last_many", [2, 260, 5, 5], [6500, 1, 1300, 260]),
        ):
            for variance in ("quarters", "positive"):
                for cudnn in (False, True):
                    if not (cudnn and dtype == "bfloat16"):
                        norm(f"{SHORT[dtype]}.{name}.{variance}", dtype, sizes, strides, variance, cudnn=cudnn)  # fmt: skip
        norm(f"{SHORT[dtype]}.matrix.quarters", dtype, [6, 40], None, "quarters", cudnn=False)  # fmt: skip
        norm(f"{SHORT[dtype]}.wide.positive", dtype, [1, 16, 9, 8], None, "positive", cudnn=False, fill="wide")  # fmt: skip


def norm(
    name: str,
    dtype: str,
    sizes: list[int],
    strides: list[int] | None,
    variance: str,
    *,
    cudnn: bool,
    fill: str = "spread",
) -> None:
    """Add a batch norm. The reciprocal roots of quarters are exact."""
    channels = sizes[1]
    arguments: list[Argument] = [
        ("input", tensor(dtype, sizes, 1, fill, strides)),
        ("weight", tensor("float32", [channels], 2)), ("bias", tensor("float32", [channels], 3)),
        ("running_mean", tensor("float32", [channels], 4)), ("running_var", tensor("float32", [channels], 5, variance)),
        ("training", False),
    ]  # fmt: skip
    eps = 2.0**-10 if variance == "quarters" else 1e-5
    result = {
        "dtype": dtype,
        "sizes": sizes,
        "strides": strides or opcases.contiguous(sizes),
    }
    saved = {"dtype": "float32", "sizes": [channels], "strides": [1]}
    none = {"dtype": "float32", "sizes": [0], "strides": [1]}
    exact = variance == "quarters"
    if cudnn:
        # cuDNN has another order of operations for channels-last tensors, which the host does not follow.
        exact = exact and strides is None
        arguments += [("exponential_average_factor", 0.1), ("epsilon", eps)]
        results = [result, none, none, none | {"dtype": "uint8"}]
        case(f"cudnn_batch_norm.{name}", "aten::cudnn_batch_norm", arguments, exact, results)  # fmt: skip
    else:
        arguments += [("momentum", 0.1), ("eps", eps)]
        results = [result, saved, saved]
        case(f"native_batch_norm.{name}", "aten::native_batch_norm", arguments, exact, results)  # fmt: skip
