"""Convolutions in the forms that models use beside the plain ones: transposed, depthwise, grouped, odd layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from casekit import FLOATS, SHORT, Argument, case, tensor


class Form(NamedTuple):
    """A convolution; `last` says that its result is channels-last on CUDA."""

    name: str
    x: list[int]
    w: list[int]
    strides: list[int] | None = None
    offset: int = 0
    weight_strides: list[int] | None = None
    stride: Sequence[int] = (1, 1)
    padding: Sequence[int] = (0, 0)
    dilation: Sequence[int] = (1, 1)
    output_padding: Sequence[int] = (0, 0)
    transposed: bool = False
    groups: int = 1
    bias: bool = False
    last: bool = False
    exact: bool = False


def add() -> None:
    """Add the forms in each type."""
    for dtype in FLOATS:
        for form in transposed() + grouped() + layouts():
            add_form(dtype, form)


def last(x: list[int]) -> list[int]:
    """Give the strides of a dense channels-last tensor."""
    _, c, h, w = x
    return [c * h * w, 1, w * c, c]


def transposed() -> list[Form]:
    """Give transposed convolutions."""
    two, one = [2, 2], [1, 1]
    x = [2, 16, 7, 9]
    return [
        Form("transposed.2x2", [1, 96, 20, 20], [96, 96, 2, 2], stride=two, transposed=True, bias=True),
        Form("transposed.4x4", [1, 48, 12, 12], [48, 48, 4, 4], stride=[4, 4], transposed=True, bias=True),
        Form("transposed.batch", [3, 32, 10, 10], [32, 24, 2, 2], stride=two, transposed=True, bias=True),
        Form("transposed.output_padding", [2, 16, 9, 8], [16, 12, 3, 3], stride=two, padding=one,
             output_padding=[1, 0], transposed=True, bias=True),
        Form("transposed.stride_1", [1, 16, 9, 9], [16, 8, 3, 3], padding=one, transposed=True),
        Form("transposed.dilated", [1, 16, 9, 9], [16, 8, 3, 3], dilation=two, transposed=True),
        Form("transposed.groups", [1, 16, 9, 9], [16, 4, 2, 2], stride=two, groups=4, transposed=True, bias=True),
        Form("transposed.depthwise", [1, 16, 9, 9], [16, 1, 3, 3], stride=two, padding=one, output_padding=one,
             groups=16, transposed=True),
        Form("transposed.channels_last", x, [16, 8, 2, 2], strides=last(x), stride=two, transposed=True, bias=True,
             last=True),
        Form("transposed.part", [2, 8, 6, 6], [8, 8, 2, 2], strides=[576, 36, 6, 1], offset=288, stride=two,
             transposed=True),
    ]  # fmt: skip


def grouped() -> list[Form]:
    """Give depthwise and other grouped convolutions."""
    one, two = [1, 1], [2, 2]
    forms = []
    for n in (1, 3):
        x = [n, 48, 20, 20]
        forms += [
            Form(f"groups.depthwise_last_{n}", x, [48, 1, 7, 7], strides=last(x), padding=[3, 3], groups=48, bias=True,
                 last=True),
            Form(f"groups.depthwise_3x3_{n}", x, [48, 1, 3, 3], padding=one, groups=48, bias=True, exact=True),
            Form(f"groups.depthwise_5x5_stride_2_{n}", x, [48, 1, 5, 5], stride=two, padding=two, groups=48, exact=True),
            Form(f"groups.depthwise_dilated_{n}", x, [48, 1, 3, 3], padding=two, dilation=two, groups=48, exact=True),
            Form(f"groups.sixteenths_{n}", [n, 64, 20, 20], [64, 16, 3, 3], padding=one, groups=4),
            Form(f"groups.1x1_{n}", [n, 48, 24, 24], [96, 12, 1, 1], groups=4),
            Form(f"groups.odd_{n}", [n, 144, 16, 16], [96, 36, 1, 1], groups=4, bias=True),
        ]  # fmt: skip
    return forms


def layouts() -> list[Form]:
    """Give convolutions of inputs and weights that do not lie row by row."""
    one, two = [1, 1], [2, 2]
    x1, x3 = [1, 32, 14, 14], [3, 32, 14, 14]
    return [
        Form("layouts.last_1", x1, [48, 32, 3, 3], strides=last(x1), padding=one, bias=True, last=True),
        Form("layouts.last_3", x3, [48, 32, 2, 2], strides=last(x3), stride=two, bias=True, last=True),
        Form("layouts.last_1x1", x3, [48, 32, 1, 1], strides=last(x3), bias=True, last=True),
        # One image whose first stride is a channel's: PyTorch does not take it for channels-last.
        Form("layouts.not_quite_last", x1, [48, 32, 3, 3], strides=[32, 1, 448, 32], padding=one, bias=True),
        Form("layouts.last_weight", x3, [48, 32, 3, 3], weight_strides=[288, 1, 96, 32], padding=one, last=True),
        Form("layouts.image_of_one_pixel", [3, 64, 1, 1], [32, 64, 1, 1], bias=True),
        Form("layouts.image_of_one_pixel_last", [3, 64, 1, 1], [32, 64, 1, 1], strides=[64, 1, 64, 64], bias=True,
             last=True),
        Form("layouts.one_channel", [2, 1, 20, 20], [16, 1, 3, 3], padding=one),
        Form("layouts.repeated", [2, 8, 10, 10], [16, 8, 3, 3], strides=[800, 0, 10, 1], padding=one),
        Form("layouts.every_other_column", [2, 8, 10, 10], [16, 8, 3, 3], strides=[1600, 200, 20, 2], padding=one),
        Form("layouts.aligned_to_16", [1, 10, 20, 20], [10, 10, 3, 3], strides=[8000, 400, 20, 1], offset=24,
             padding=one),
        Form("layouts.wide_filter", [1, 16, 20, 30], [16, 16, 1, 7], padding=[0, 3], bias=True),
        Form("layouts.large_filter", [1, 3, 64, 64], [24, 3, 16, 16], stride=[16, 16], bias=True),
        Form("layouts.dilated", x1, [32, 32, 3, 3], padding=[6, 6], dilation=[6, 6]),
    ]  # fmt: skip


def add_form(dtype: str, form: Form) -> None:
    """Add a form in one type."""
    channels = form.w[1] * form.groups if form.transposed else form.w[0]
    arguments: list[Argument] = [
        ("input", tensor(dtype, form.x, 1, strides=form.strides, offset=form.offset)),
        ("weight", tensor(dtype, form.w, 2, strides=form.weight_strides)),
        ("bias", tensor(dtype, [channels], 3) if form.bias else None),
        ("stride", list(form.stride)), ("padding", list(form.padding)), ("dilation", list(form.dilation)),
        ("transposed", form.transposed), ("output_padding", list(form.output_padding)), ("groups", form.groups),
    ]  # fmt: skip
    sizes = [form.x[0], channels]
    for d in range(2):
        reach = form.dilation[d] * (form.w[2 + d] - 1) + 1
        if form.transposed:
            sizes.append(
                (form.x[2 + d] - 1) * form.stride[d]
                - 2 * form.padding[d]
                + reach
                + form.output_padding[d]
            )
        else:
            sizes.append(
                (form.x[2 + d] + 2 * form.padding[d] - reach) // form.stride[d] + 1
            )
    result = {"dtype": dtype, "sizes": sizes}
    if form.last:
        result["strides"] = last(sizes)
    # float16 depthwise convolutions are cuDNN's where those of other types are PyTorch's own.
    exact = form.exact and (dtype != "float16" or "dilated" in form.name)
    case(
        f"{form.name}.{SHORT[dtype]}",
        "aten::convolution",
        arguments,
        exact,
        results=[result],
    )
