"""Linear layers."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
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
