"""Pooling and resampling."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add pooling and resampling."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        for layout, strides in (("rows", None), ("channels_last", [432, 1, 54, 6])):
            x = tensor(dtype, [2, 6, 8, 9], strides=strides)
            windows = (
                ("5x5", 5, 1, 2, False),
                ("3x3", 3, 2, 1, False),
                ("2x2", 2, 2, 0, True),
            )
            for name, kernel, stride, padding, ceil in windows:
                arguments: list[Argument] = [
                    ("self", x), ("kernel_size", [kernel, kernel]), ("stride", [stride, stride]),
                    ("padding", [padding, padding]), ("dilation", [1, 1]), ("ceil_mode", ceil),
                ]  # fmt: skip
                case(
                    f"max_pool2d.{short}.{layout}.{name}",
                    "aten::max_pool2d_with_indices",
                    arguments,
                    True,
                )
            pools = (
                ("2x2", 2, 1, 0, True, None),
                ("3x3", 3, 2, 1, False, None),
                ("divided", 3, 2, 1, True, 7),
            )
            for name, kernel, stride, padding, include, divisor in pools:
                arguments = [
                    ("self", x), ("kernel_size", [kernel, kernel]), ("stride", [stride, stride]),
                    ("padding", [padding, padding]), ("ceil_mode", False), ("count_include_pad", include),
                    ("divisor_override", divisor),
                ]  # fmt: skip
                case(
                    f"avg_pool2d.{short}.{layout}.{name}",
                    "aten::avg_pool2d",
                    arguments,
                    True,
                )
            for name, sizes, scale in (
                ("twice", [16, 18], 2.0),
                ("to_size", [11, 7], None),
            ):
                arguments = [
                    ("self", x),
                    ("output_size", sizes),
                    ("scales_h", scale),
                    ("scales_w", scale),
                ]
                case(
                    f"upsample_nearest2d.{short}.{layout}.{name}",
                    "aten::upsample_nearest2d",
                    arguments,
                    True,
                )
