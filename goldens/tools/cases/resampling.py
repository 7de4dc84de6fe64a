"""Resizing of images: bilinear, bicubic, both with and without antialiasing, and the nearest pixel."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, Argument, case, tensor

# Name, image, size, scales, aligned corners or not.
SHAPES: tuple[tuple[str, list[int], list[int], float | None, tuple[bool, ...]], ...] = (
    ("twice", [2, 3, 5, 7], [10, 14], None, (False, True)),
    ("twice_by_scale", [2, 3, 5, 7], [10, 14], 2.0, (False, True)),
    ("odd_ratio", [1, 2, 7, 10], [11, 23], None, (False, True)),
    ("smaller", [1, 3, 21, 17], [8, 5], None, (False, True)),
    ("much_smaller", [1, 2, 64, 90], [4, 7], None, (False,)),
    ("other_scale", [1, 2, 10, 10], [17, 17], 1.75, (False,)),
    ("repeating_scale", [1, 2, 37, 37], [46, 46], 46.1 / 37, (False,)),
    ("same", [2, 3, 6, 5], [6, 5], None, (False, True)),
    ("one_size_kept", [1, 2, 6, 5], [6, 9], None, (False, True)),
    ("from_one", [1, 5, 1, 1], [4, 3], None, (False, True)),
    ("to_one", [1, 5, 6, 6], [1, 1], None, (False, True)),
    ("large", [1, 3, 33, 45], [100, 77], None, (False, True)),
)
OPERATIONS = {
    "bilinear": "aten::upsample_bilinear2d",
    "bicubic": "aten::upsample_bicubic2d",
    "bilinear_aa": "aten::_upsample_bilinear2d_aa",
    "bicubic_aa": "aten::_upsample_bicubic2d_aa",
}


def add() -> None:
    """Add each kind in every type and layout."""
    for kind in OPERATIONS:
        for dtype in FLOATS:
            for name, sizes, to, scale, corners in SHAPES:
                for align in corners:
                    shape = f"{name}.corners" if align else name
                    resize(kind, shape, tensor(dtype, sizes, 1), to, align, scale)
            layouts(kind, dtype)
    for dtype in FLOATS:
        for name, sizes, to, scale, _ in SHAPES:
            nearest(name, tensor(dtype, sizes, 7, "bits"), to, scale)
        nearest(
            "channels_last",
            tensor(dtype, [2, 6, 5, 7], 8, strides=[210, 1, 42, 6]),
            [9, 14],
            None,
        )


def layouts(kind: str, dtype: str) -> None:
    """Add layouts, and values that arithmetic spoils."""
    # Bilinear has a kernel of its own for 16 channels and more.
    for channels in (6, 16, 24):
        image = tensor(
            dtype,
            [2, channels, 5, 7],
            2,
            strides=[35 * channels, 1, 7 * channels, channels],
        )
        resize(kind, f"channels_last_{channels}", image, [9, 15], False)
        resize(kind, f"channels_last_{channels}.corners", image, [9, 15], True)
        resize(kind, f"channels_last_{channels}.smaller", image, [3, 4], False)
    tokens = tensor(
        dtype, [1, 24, 13, 13], 3, strides=[25 * 169, 1, 13 * 24, 24], offset=24
    )
    resize(kind, "tokens", tokens, [20, 20], False)
    resize(
        kind,
        "transposed",
        tensor(dtype, [1, 4, 5, 6], 4, strides=[120, 5, 1, 20]),
        [8, 11],
        False,
    )
    resize(
        kind,
        "slice",
        tensor(dtype, [2, 3, 6, 6], 5, strides=[216, 36, 6, 1], offset=108),
        [9, 8],
        False,
    )
    resize(kind, "wide", tensor(dtype, [1, 3, 16, 16], 6, "wide"), [23, 29], False)
    # A NaN that arithmetic makes has other bits on the CPU, until it is converted.
    for align in (False, True):
        name = "edges.corners" if align else "edges"
        resize(
            kind,
            name,
            tensor(dtype, [1, 3, 11, 22], 0, "edges"),
            [17, 31],
            align,
            exact=dtype != "float32",
        )
    resize(
        kind,
        "same_bits",
        tensor(dtype, [2, 3, 6, 5], 6, "bits"),
        [6, 5],
        False,
        exact=not kind.endswith("aa"),
    )


def resize(
    kind: str, name: str, image: Any, to: list[int], align: bool, scale: float | None = None, *, exact: bool = True
) -> None:  # fmt: skip
    """Add a case; the result has the memory format of the image."""
    arguments: list[Argument] = [
        ("self", image), ("output_size", to), ("align_corners", align), ("scales_h", scale), ("scales_w", scale),
    ]  # fmt: skip
    title = f"upsample_{kind}.{SHORT[image['dtype']]}.{name}"
    case(title, OPERATIONS[kind], arguments, exact, [result(image, to)])


def nearest(name: str, image: Any, to: list[int], scale: float | None) -> None:
    """Add the nearest pixel, by its centre."""
    arguments: list[Argument] = [
        ("self", image),
        ("output_size", to),
        ("scales_h", scale),
        ("scales_w", scale),
    ]
    case(f"upsample_nearest_exact.{SHORT[image['dtype']]}.{name}", "aten::_upsample_nearest_exact2d", arguments, True,
         [result(image, to)])  # fmt: skip


def result(image: Any, to: list[int]) -> dict[str, Any]:
    """Describe the result: channels last if the image is so."""
    n, c, h, w = *image["sizes"][:2], *to
    last = image.get("strides", [])[1:2] == [1]
    strides = [c * h * w, 1, c * w, c] if last else [c * h * w, h * w, w, 1]
    return {"dtype": image["dtype"], "sizes": [n, c, h, w], "strides": strides}
