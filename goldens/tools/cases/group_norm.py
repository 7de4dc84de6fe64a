"""Group norm: groups below and above a block, planes by vectors and by elements, planes of one element."""

from __future__ import annotations

import math

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases

# An eps beside which any variance vanishes: rstd is 2^-20 exactly, so that the mean is proved on a CPU too.
HUGE = 2.0**40


def add() -> None:
    """Add every path, with and without weight and bias."""
    shapes: list[tuple[str, list[int], int]] = [
        ("one_warp", [2, 12, 5, 7], 4),
        ("below_a_block", [1, 4, 7, 73], 4),
        ("a_block", [1, 4, 8, 32], 2),
        ("packs", [2, 16, 20, 20], 4),
        ("elements", [3, 6, 23, 17], 3),
        ("mask_head", [1, 128, 20, 20], 32),
        ("large", [1, 64, 46, 46], 8),
        ("one_group", [2, 5, 30], 1),
        ("channels_alone", [2, 6, 40], 6),
        ("vectors", [3, 16], 4),
        ("long_vectors", [2, 1040], 2),
    ]
    for dtype in FLOATS:
        for name, sizes, groups in shapes:
            for parameters in range(4):
                norm(f"{SHORT[dtype]}.{name}", dtype, sizes, groups, parameters, "spread")
            if dtype != "float16":
                norm(f"{SHORT[dtype]}.{name}", dtype, sizes, groups, 3, "spread", HUGE)
        norm(f"{SHORT[dtype]}.edges", dtype, [30, 4, 11], 2, 3, "edges")
        norm(f"{SHORT[dtype]}.wide", dtype, [2, 8, 9, 11], 2, 3, "wide")


def norm(
    name: str,
    dtype: str,
    sizes: list[int],
    groups: int,
    parameters: int,
    fill: str,
    eps: float = 1e-5,
) -> None:
    """Add a group norm; parameters: 1 a weight, 2 a bias, 3 both."""
    arguments: list[Argument] = [
        ("input", tensor(dtype, sizes, 1, fill)),
        ("weight", tensor(dtype, [sizes[1]], 2) if parameters & 1 else None),
        ("bias", tensor(dtype, [sizes[1]], 3) if parameters & 2 else None),
        ("N", sizes[0]), ("C", sizes[1]), ("HxW", math.prod(sizes[2:])), ("group", groups), ("eps", eps),
    ]  # fmt: skip
    shape = [sizes[0], groups]
    statistic = {"dtype": dtype, "sizes": shape, "strides": opcases.contiguous(shape)}
    y = {"dtype": dtype, "sizes": sizes, "strides": opcases.contiguous(sizes)}
    case(
        f"group_norm.{name}.{parameters}" + (".mean" if eps == HUGE else ""),
        "aten::native_group_norm",
        arguments,
        eps == HUGE,
        [y, statistic, statistic],
    )
