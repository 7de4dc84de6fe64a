"""Batch norms in evaluation, of PyTorch and of cuDNN."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases


def add() -> None:
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
                norm(
                    f"{SHORT[dtype]}.{name}.{variance}", dtype, sizes, strides, variance
                )
        norm(
            f"{SHORT[dtype]}.edges.quarters",
            dtype,
            [1, 4, 11, 22],
            None,
            "quarters",
            "edges",
        )


def norm(
    name: str,
    dtype: str,
    sizes: list[int],
    strides: list[int] | None,
    variance: str,
    fill: str = "spread",
) -> None:
    """Add a batch norm, natively and by cuDNN where PyTorch may give it to cuDNN."""
    channels = sizes[1]
    eps = 2.0**-10 if variance == "quarters" else 1e-3
    parameters: list[Argument] = [
        ("input", tensor(dtype, sizes, 0 if fill == "edges" else 1, fill, strides)),
        ("weight", tensor("float32", [channels], 2)), ("bias", tensor("float32", [channels], 3)),
        ("running_mean", tensor("float32", [channels], 4)), ("running_var", tensor("float32", [channels], 5, variance)),
        ("training", False),
    ]  # fmt: skip
    result = {
        "dtype": dtype,
        "sizes": sizes,
        "strides": strides or opcases.contiguous(sizes),
    }
    saved = {"dtype": "float32", "sizes": [channels], "strides": [1]}
    exact = variance == "quarters" and fill != "edges"
    native = [*parameters, ("momentum", 0.1), ("eps", eps)]
    case(
        f"native_batch_norm.{name}",
        "aten::native_batch_norm",
        native,
        exact,
        [result, saved, saved],
    )
    if dtype != "bfloat16":
        cudnn = [*parameters, ("exponential_average_factor", 0.1), ("epsilon", eps)]
        none = {"dtype": "float32", "sizes": [0], "strides": [1]}
        results = [result, none, none, none | {"dtype": "uint8"}]
        # The CPU has one order of operations, cuDNN another one for channels-last tensors.
        case(
            f"cudnn_batch_norm.{name}",
            "aten::cudnn_batch_norm",
            cudnn,
            exact and strides is None,
            results,
        )
