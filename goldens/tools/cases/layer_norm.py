"""Layer norm: both kernels, rows of every length that divides work differently, with and without weight and bias."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases

# An eps beside which any variance vanishes: rstd is 2^-20 exactly, so that the mean is proved on a CPU too.
HUGE = 2.0**40


def add() -> None:
    """Add rows by vectors and rows by elements."""
    shapes: list[tuple[str, list[int], list[int] | None, int, int]] = [
        ("one_vector", [7, 4], None, 0, 1),
        ("part_of_a_warp", [2, 33, 60], None, 0, 1),
        ("a_warp", [9, 128], None, 0, 1),
        ("two_warps", [5, 192], None, 0, 1),
        ("three_warps", [1, 21, 384], None, 0, 1),
        ("a_block", [4, 512], None, 0, 1),
        ("two_vectors", [3, 768], None, 0, 1),
        ("three_vectors", [3, 1536], None, 0, 1),
        ("many_vectors", [2, 6020], None, 0, 1),
        ("two_dimensions", [5, 12, 17], None, 0, 2),
        ("transposed", [1, 40, 96], [3840, 1, 40], 0, 1),
        ("pixels", [1, 6, 7, 128], [5376, 7, 1, 42], 0, 1),
        ("repeated", [3, 20, 96], [0, 96, 1], 0, 1),
        ("aligned_part", [5, 256], None, 1280, 1),
        ("odd", [5, 385], None, 0, 1),
        ("one_element", [6, 1], None, 0, 1),
        ("short_odd", [6, 30], None, 0, 1),
        ("long_odd", [2, 3003], None, 0, 1),
        ("misaligned", [4, 384], None, 2, 1),
    ]
    for dtype in FLOATS:
        for name, sizes, strides, offset, dims in shapes:
            x = tensor(dtype, sizes, 1, strides=strides, offset=offset)
            both = name in ("part_of_a_warp", "three_warps", "many_vectors", "odd")
            for parameters in range(4) if both else (3,):
                for eps in (1e-5, HUGE):
                    norm(f"{SHORT[dtype]}.{name}", dtype, x, dims, parameters, eps)
        for name, width in (("vectors", 44), ("elements", 22)):
            x = tensor(dtype, [40, width], 1, "edges")
            norm(f"{SHORT[dtype]}.edges_{name}", dtype, x, 1, 3, 1e-5)
        for name, width in (("vectors", 256), ("elements", 255)):
            x = tensor(dtype, [4, width], 5, "wide")
            norm(f"{SHORT[dtype]}.wide_{name}", dtype, x, 1, 3, 1e-6)
        # Weights that do not begin at a multiple of a vector: the other kernel.
        x = tensor(dtype, [4, 384], 1)
        norm(f"{SHORT[dtype]}.weight_misaligned", dtype, x, 1, 3, 1e-5, 1)


def norm(
    name: str,
    dtype: str,
    x: dict[str, object],
    dims: int,
    parameters: int,
    eps: float,
    offset: int = 0,
) -> None:
    """Add a layer norm over the last dimensions; parameters: 1 a weight, 2 a bias, 3 both."""
    sizes: list[int] = x["sizes"]  # type: ignore[assignment]
    shape = sizes[-dims:]
    arguments: list[Argument] = [
        ("input", x), ("normalized_shape", shape),
        ("weight", tensor(dtype, shape, 2, offset=offset) if parameters & 1 else None),
        ("bias", tensor(dtype, shape, 3) if parameters & 2 else None), ("eps", eps),
    ]  # fmt: skip
    rows = sizes[:-dims] + [1] * dims
    statistic = {
        "dtype": "float32",
        "sizes": rows,
        "strides": opcases.contiguous(rows),
    }
    y = {"dtype": dtype, "sizes": sizes, "strides": opcases.contiguous(sizes)}
    case(
        f"layer_norm.{name}.{parameters}" + (".mean" if eps == HUGE else ""),
        "aten::native_layer_norm",
        arguments,
        eps == HUGE,
        [y, statistic, statistic],
    )
