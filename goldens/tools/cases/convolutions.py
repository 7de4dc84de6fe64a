"""Convolutions of cuDNN, and depthwise ones."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add convolutions of cuDNN, and depthwise ones."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        for name, *geometry in (
            ("stem", [1, 3, 64, 64], None, 0, [16, 3, 3, 3], 2, 1, 1, 1, False),
            ("3x3", [2, 16, 20, 20], None, 0, [32, 16, 3, 3], 1, 1, 1, 1, False),
            (
                "3x3_stride_2",
                [1, 32, 21, 21],
                None,
                0,
                [32, 32, 3, 3],
                2,
                1,
                1,
                1,
                True,
            ),
            ("1x1", [1, 64, 20, 20], None, 0, [32, 64, 1, 1], 1, 0, 1, 1, True),
            ("1x1_batch", [4, 48, 10, 10], None, 0, [24, 48, 1, 1], 1, 0, 1, 1, False),
            ("7x7", [1, 3, 40, 40], None, 0, [64, 3, 7, 7], 2, 3, 1, 1, False),
            (
                "part",
                [4, 16, 10, 10],
                [3200, 100, 10, 1],
                1600,
                [16, 16, 3, 3],
                1,
                1,
                1,
                1,
                False,
            ),
            (
                "part_of_one",
                [1, 16, 10, 10],
                [3200, 100, 10, 1],
                1600,
                [16, 16, 3, 3],
                1,
                1,
                1,
                1,
                False,
            ),
            ("misaligned", [1, 8, 9, 9], None, 1, [8, 8, 3, 3], 1, 1, 1, 1, False),
            ("dilated", [1, 16, 16, 16], None, 0, [16, 16, 3, 3], 1, 2, 2, 1, False),
            ("groups", [1, 32, 12, 12], None, 0, [32, 8, 3, 3], 1, 1, 1, 4, True),
            (
                "channels_last",
                [2, 16, 12, 12],
                [2304, 1, 192, 16],
                0,
                [32, 16, 3, 3],
                1,
                1,
                1,
                1,
                True,
            ),
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
