"""Deformable convolution: pixels at learned offsets, then a matrix product for each group."""

from __future__ import annotations

from typing import Any

from casekit import Argument, case, tensor


def add() -> None:
    """Add the forms of BiRefNet in small, groups, batches and edges."""
    for name, x, w, stride, padding, dilation, groups, offsets, mask, exact in (
        ("1x1", [1, 64, 20, 20], [256, 64, 1, 1], 1, 0, 1, 1, 1, True, False),
        ("3x3", [1, 64, 20, 20], [256, 64, 3, 3], 1, 1, 1, 1, 1, True, False),
        ("7x7", [1, 64, 20, 20], [256, 64, 7, 7], 1, 3, 1, 1, 1, True, False),
        ("3x3_large", [1, 64, 40, 40], [256, 64, 3, 3], 1, 1, 1, 1, 1, True, False),
        ("1x1_large", [1, 64, 80, 80], [256, 64, 1, 1], 1, 0, 1, 1, 1, True, False),
        ("3x3_stride_2", [1, 8, 13, 11], [12, 8, 3, 3], 2, 1, 1, 1, 1, True, False),
        ("dilated", [1, 8, 13, 11], [12, 8, 3, 3], 1, 2, 2, 1, 1, True, False),
        ("without_mask", [1, 8, 9, 9], [12, 8, 3, 3], 1, 1, 1, 1, 1, False, False),
        ("groups", [1, 8, 9, 9], [12, 4, 3, 3], 1, 1, 1, 2, 1, True, False),
        ("offset_groups", [1, 8, 9, 9], [12, 8, 3, 3], 1, 1, 1, 1, 4, True, False),
        ("batch_of_3", [3, 8, 9, 9], [12, 8, 3, 3], 1, 1, 1, 1, 2, True, False),
        ("batch_of_34", [34, 4, 5, 5], [6, 2, 3, 3], 1, 1, 1, 2, 1, True, False),
        ("one_channel", [2, 1, 9, 9], [5, 1, 1, 1], 1, 0, 1, 1, 1, True, True),
    ):
        for dtype in ("float32", "float16"):
            short = {"float32": "f32", "float16": "f16"}[dtype]
            deform(
                f"{short}.{name}",
                dtype,
                x,
                w,
                stride,
                padding,
                dilation,
                groups,
                offsets,
                mask,
                exact,
            )
    geometry = [1, 1, 9, 9], [3, 1, 1, 1], 1, 0, 1, 1, 1, True
    deform("f32.wide", "float32", *geometry, True, fill="wide")
    deform("f32.edges", "float32", *geometry, False, fill="edges")
    deform("f16.edges", "float16", *geometry, True, fill="edges")


def deform(
    name: str, dtype: str, x: list[int], w: list[int], stride: int, padding: int, dilation: int, groups: int, offsets: int,
    mask: bool, exact: bool, fill: str = "spread",
) -> None:  # fmt: skip
    """Add a case."""
    size = [
        (x[d] + 2 * padding - dilation * (w[d] - 1) - 1) // stride + 1 for d in (2, 3)
    ]
    places = offsets * w[2] * w[3]
    # PyTorch's caller gives a tensor without elements for no mask.
    weights: Any = tensor(
        dtype, [x[0], places, *size] if mask else [x[0], 1], 4, "unit"
    )
    arguments: list[Argument] = [
        ("input", tensor(dtype, x, 1)), ("weight", tensor(dtype, w, 2)),
        ("offset", tensor(dtype, [x[0], 2 * places, *size], 3 if fill != "edges" else 0, fill)), ("mask", weights),
        ("bias", tensor(dtype, [w[0]], 5)), ("stride_h", stride), ("stride_w", stride), ("pad_h", padding),
        ("pad_w", padding), ("dilation_h", dilation), ("dilation_w", dilation), ("groups", groups),
        ("offset_groups", offsets), ("use_mask", mask),
    ]  # fmt: skip
    sizes = [x[0], w[0], *size]
    strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
    case(f"deform_conv2d.{name}", "torchvision::deform_conv2d", arguments, exact,
         [{"dtype": dtype, "sizes": sizes, "strides": strides}])  # fmt: skip
