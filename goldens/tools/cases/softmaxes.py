"""Softmax in further forms of real models, and its safe variant, whose rows of nothing but -infinity are zeros."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases

Shape = tuple[str, list[int], int]
ROWS: tuple[Shape, ...] = (
    ("rows_1", [70, 1], 1), ("rows_2", [33, 16, 2], -1), ("rows_6", [5, 8, 6], -1), ("rows_12", [30, 8, 12], -1),
    ("rows_18", [60, 18, 18], -1), ("rows_33", [1, 30, 4, 33], -1), ("rows_50", [1, 3, 50, 50], -1),
    ("rows_64", [40, 6, 8, 64], -1), ("rows_100", [8, 25, 100], -1), ("rows_256", [1, 12, 1, 256], -1),
    ("rows_300", [1, 2, 30, 300], -1), ("rows_730", [4, 3, 730], -1), ("rows_1025", [3, 1025], 1),
    ("rows_1601", [1, 3, 7, 1601], -1), ("elements_2117", [1, 3, 7, 2117], -1), ("elements_2810", [9, 2810], -1),
)  # fmt: skip
INNER: tuple[Shape, ...] = (
    ("pose", [1, 17, 40, 4], 1), ("deblur", [1, 9, 4, 32, 20], 1), ("shared", [2, 70, 3], 1),
)  # fmt: skip


def add() -> None:
    """Add softmax, half_to_float, and safe softmax of rows of which some are masked, whole or in part."""
    for name, sizes, dim in (*ROWS, *INNER):
        plain(f"softmax.f32.real_{name}", "float32", sizes, dim, to_float=False)
        plain(f"softmax.f16_f32.real_{name}", "float16", sizes, dim, to_float=True)
    for width in (1000, 1024, 1032, 1100, 1600, 2048, 2051):
        sizes = [2, width]
        plain(f"softmax.f16_f32.width_{width}", "float16", sizes, 1, to_float=True)
    # Transposed as anchors of a pose are: a copy first.
    x = tensor("float32", [1, 17, 25, 4], 9, strides=[1700, 25, 1, 425])
    arguments = [("self", x), ("dim", 1), ("half_to_float", False)]
    case("softmax.f32.real_transposed", "aten::_softmax", arguments, False)
    for dtype in FLOATS:
        for name, sizes, dim in (*ROWS, *INNER):
            safe(f"{SHORT[dtype]}.{name}", tensor(dtype, sizes, 9), dim)
        # Rows of one value each, for every edge: the twentieth of 22 is -infinity.
        for width, seed in ((22, 1), (11, 1), (484, 2), (2662, 3), (10648, 3)):
            rows = 22 * 22**seed // width
            x = tensor(dtype, [rows, width], seed, "edges")
            safe(f"{SHORT[dtype]}.edges_{width}", x, 1)
        x = tensor(dtype, [22, 88, 121], 3, "edges")
        safe(f"{SHORT[dtype]}.edges_inner", x, 1)
        x = tensor(dtype, [22, 242, 2], 2, "edges")
        safe(f"{SHORT[dtype]}.edges_inner_shared", x, 1)
        safe(f"{SHORT[dtype]}.edges_mixed", tensor(dtype, [22, 22], 0, "edges"), 1)


def plain(name: str, dtype: str, sizes: list[int], dim: int, *, to_float: bool) -> None:
    """Add a softmax; the CPU has no conversion."""
    arguments: list[Argument] = [("self", tensor(dtype, sizes, 9)), ("dim", dim), ("half_to_float", to_float)]  # fmt: skip
    out = "float32" if to_float else dtype
    result = {"dtype": out, "sizes": sizes, "strides": opcases.contiguous(sizes)}
    case(name, "aten::_softmax", arguments, False, [result] if to_float else None)


def safe(name: str, x: dict[str, Any], dim: int) -> None:
    """Add a safe softmax."""
    arguments: list[Argument] = [("self", x), ("dim", dim), ("dtype", None)]
    case(f"safe_softmax.{name}", "aten::_safe_softmax", arguments, False)
