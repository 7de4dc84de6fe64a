"""Running sums: a tree of additions along the last dimension, one after the other along others, CUB's for a vector."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add cumsum and cumsum_."""
    for dtype in FLOATS:
        for name, sizes, strides, dim in (
            ("rows", [4, 5, 80], None, -1),
            ("rows_40", [3, 40], None, 1),
            ("rows_17", [600, 17], None, 1),
            ("long_rows", [3, 2500], None, 1),
            ("wide_block", [1100, 5, 2], None, -1),
            ("two_rows", [2, 1025], None, 1),
            ("columns", [3, 80, 40], None, -2),
            ("first", [50, 33], None, 0),
            ("turned_rows", [6, 70], [1, 6], 1),
            ("turned_columns", [5, 30, 4], [120, 1, 30], 1),
            ("vector", [128], None, 0),
            ("vector_1", [1], None, 0),
            ("vector_1000", [1, 1000], None, 1),
            ("vector_1920", [1920, 1, 1], None, 0),
            ("ones", [3, 1], None, 1),
        ):
            slow = name == "wide_block"
            for fill in ("spread",) if slow else ("spread", "finite", "edges"):
                self = tensor(dtype, sizes, 5 if fill == "spread" else 0, fill, strides)
                short = f"{SHORT[dtype]}.{name}.{fill}"
                # An infinity less another is a NaN whose bits differ between CPU and GPU; sums of the largest numbers overflow.
                exact = fill == "spread"
                arguments: list[Argument] = [
                    ("self", self),
                    ("dim", dim),
                    ("dtype", None),
                ]
                case(f"cumsum.{short}", "aten::cumsum", arguments, exact)
                if name in ("columns", "rows", "vector", "turned_rows", "long_rows"):
                    case(f"cumsum_.{short}", "aten::cumsum_", arguments, exact)
    for dtype, out in (
        ("bfloat16", "float32"),
        ("float16", "float32"),
        ("float32", "bfloat16"),
        ("bool", "float32"),
        ("int64", "float16"),
        ("float32", "int64"),
    ):
        for name, sizes, dim in (
            ("rows", [3, 50, 40], -1),
            ("columns", [3, 50, 40], 1),
            ("vector", [200], 0),
        ):
            fill = {"bool": "below 2", "int64": "around 30"}.get(dtype, "spread")
            arguments = [
                ("self", tensor(dtype, sizes, 6, fill)),
                ("dim", dim),
                ("dtype", {"as": out}),
            ]
            case(f"cumsum.{dtype}_{out}.{name}", "aten::cumsum", arguments, True)
    for dtype in ("int64", "int32", "bool", "uint8"):
        for name, sizes, dim in (
            ("rows", [7, 33], -1),
            ("columns", [7, 33], 0),
            ("vector", [5000], 0),
        ):
            fill = "below 2" if dtype == "bool" else "below 100"
            arguments = [
                ("self", tensor(dtype, sizes, 6, fill)),
                ("dim", dim),
                ("dtype", None),
            ]
            case(f"cumsum.{dtype}.{name}", "aten::cumsum", arguments, True)
