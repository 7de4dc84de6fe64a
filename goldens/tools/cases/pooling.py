"""Pooling windows of all the sizes that models have; smaller ones are among the images."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add averages and maxima."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        for name, sizes, kernel, stride, padding, ceil, include in (
            ("3x3", [1, 4, 20, 20], 3, 2, 1, False, True),
            ("5x5", [1, 3, 21, 20], 5, 2, 2, False, True),
            ("9x9", [1, 2, 20, 24], 9, 4, 4, False, True),
            ("17x17", [1, 2, 40, 32], 17, 8, 8, False, True),
            ("ceil", [1, 3, 9, 11], 2, 2, 0, True, True),
            ("ceil_without_padding", [1, 3, 9, 11], 3, 2, 1, True, False),
            ("wide", [1, 3, 16, 16], 2, 1, 0, False, True),
        ):
            x = tensor(dtype, sizes, 1, "wide" if name == "wide" else "spread")
            arguments: list[Argument] = [
                ("self", x), ("kernel_size", [kernel, kernel]), ("stride", [stride, stride]),
                ("padding", [padding, padding]), ("ceil_mode", ceil), ("count_include_pad", include),
                ("divisor_override", None),
            ]  # fmt: skip
            case(
                f"avg_pool2d.{short}.pooling.{name}",
                "aten::avg_pool2d",
                arguments,
                True,
            )
        for name, sizes, kernel, stride, padding, ceil in (
            ("9x9", [1, 3, 20, 20], 9, 1, 4, False),
            ("13x13", [1, 3, 20, 20], 13, 1, 6, False),
            ("3x3", [1, 3, 33, 32], 3, 2, 1, False),
            ("2x2_overlapping", [1, 3, 21, 21], 2, 1, 0, False),
            ("2x2_ceil", [1, 3, 21, 21], 2, 1, 0, True),
        ):
            for fill in ("spread", "edges"):
                arguments = [
                    ("self", tensor(dtype, sizes, 0, fill)), ("kernel_size", [kernel, kernel]),
                    ("stride", [stride, stride]), ("padding", [padding, padding]), ("dilation", [1, 1]), ("ceil_mode", ceil),
                ]  # fmt: skip
                case(
                    f"max_pool2d.{short}.pooling.{name}.{fill}",
                    "aten::max_pool2d_with_indices",
                    arguments,
                    True,
                )
