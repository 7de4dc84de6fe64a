"""Lookups by index, and what moves elements without arithmetic."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, Argument, case, tensor

TYPES = (*FLOATS, "int64", "int32", "uint8", "bool")
NAMES = {**SHORT, "int64": "i64", "int32": "i32", "uint8": "u8", "bool": "bool"}


def some(
    dtype: str,
    sizes: list[int],
    seed: int = 1,
    strides: list[int] | None = None,
    offset: int = 0,
) -> dict[str, Any]:
    """Describe an input of any bits that the type has."""
    fill = "bits" if dtype in FLOATS else "below 2" if dtype == "bool" else "below 200"
    return tensor(dtype, sizes, seed, fill, strides, offset)


def add() -> None:
    """Add lookups, and what moves elements."""
    for dtype in TYPES:
        lookups(dtype, NAMES[dtype])
        moves(dtype, NAMES[dtype])
        pads(dtype, NAMES[dtype])
        joins(dtype, NAMES[dtype])
    mixed_joins()
    for dtype in FLOATS:
        windows(dtype, SHORT[dtype])


def lookups(dtype: str, short: str) -> None:
    """Add gather, embedding, index_select, index."""
    for name, self, strides, dim, index, index_strides in (
        ("rows", [1, 200, 4], None, 1, [1, 30, 4], None),
        ("wide_rows", [2, 50, 36], None, -2, [2, 20, 36], None),
        ("part", [3, 40, 8], [640, 16, 1], 1, [2, 9, 5], None),
        ("last", [4, 5, 40], None, 2, [4, 5, 7], [35, 1, 5]),
        ("first", [40, 6], [1, 40], 0, [7, 6], None),
        ("repeated", [1, 40, 16], None, 1, [1, 9, 16], [9, 1, 0]),
    ):
        arguments: list[Argument] = [
            ("self", some(dtype, self, 1, strides)),
            ("dim", dim),
            ("index", tensor("int64", index, 2, "below 40", index_strides)),
            ("sparse_grad", False),
        ]
        case(f"gather.{short}.{name}", "aten::gather", arguments, True)
    if dtype in FLOATS:
        for kind in ("int64", "int32"):
            arguments = [
                ("weight", some(dtype, [40, 24])),
                ("indices", tensor(kind, [3, 11], 3, "below 40")),
                ("padding_idx", 3),
                ("scale_grad_by_freq", False),
                ("sparse", False),
            ]
            case(f"embedding.{short}.{NAMES[kind]}", "aten::embedding", arguments, True)
    for dim, kind in ((0, "int64"), (1, "int32"), (-1, "int64")):
        arguments = [
            ("self", some(dtype, [40, 41, 42])),
            ("dim", dim),
            ("index", tensor(kind, [13], 4, "below 40")),
        ]
        case(f"index_select.{short}.{dim}", "aten::index_select", arguments, True)
    x = some(dtype, [20, 21, 22, 8])
    row = tensor("int64", [6], 5, "around 20")
    column = tensor("int64", [5, 1], 6, "around 20")
    point = tensor("int64", [], 7, "around 20")
    for name, self, indices in (
        ("table", some(dtype, [169, 12]), [tensor("int64", [400], 8, "below 169")]),
        ("narrow_table", some(dtype, [225, 6]), [tensor("int64", [256], 9, "below 225")]),
        ("negative", x, [row]),
        ("second", x, [None, row]),
        ("broadcast", x, [row, column]),
        ("broadcast_point", x, [None, point, column]),
        ("apart", x, [row, None, column]),
        ("apart_inside", x, [None, row, None, tensor("int64", [6], 10, "around 8")]),
        ("three", x, [row, column, row]),
        ("narrow", x, [tensor("int32", [6], 5, "around 20")]),
        ("strided", some(dtype, [20, 21, 22], 2, [1, 20, 420]), [None, row]),
    ):  # fmt: skip
        arguments = [("self", self), ("indices", indices)]
        case(f"index.{short}.{name}", "aten::index.Tensor", arguments, True)


def moves(dtype: str, short: str) -> None:
    """Add flip, roll, repeat, pixel_shuffle, pixel_unshuffle."""
    x = some(dtype, [2, 3, 8, 20])
    turned = some(dtype, [2, 3, 8, 20], 2, [480, 1, 60, 3])
    for name, dims in (
        ("last", [-1]),
        ("two", [1, 2]),
        ("all", [0, 1, 2, 3]),
        ("none", []),
    ):
        case(f"flip.{short}.{name}", "aten::flip", [("self", x), ("dims", dims)], True)
        arguments: list[Argument] = [("self", turned), ("dims", dims)]
        case(f"flip.{short}.{name}.strided", "aten::flip", arguments, True)
    for name, self, shifts, dims in (
        ("windows", some(dtype, [1, 14, 14, 24]), [-3, -3], [1, 2]),
        ("back", some(dtype, [1, 14, 14, 24]), [4, 4], [1, 2]),
        ("odd", some(dtype, [2, 7, 5, 9]), [2, -1], [1, 3]),
        ("around", x, [100, -29], [2, 3]),
        ("same_twice", x, [3, 2], [2, 2]),
        ("flat", x, [37], []),
        ("strided", turned, [1, 5], [0, 3]),
    ):
        arguments = [("self", self), ("shifts", shifts), ("dims", dims)]
        # On a GPU the result is row-major, whatever the input is.
        rows = [480, 160, 20, 1] if self is turned else None
        results = (
            [{"dtype": dtype, "sizes": [2, 3, 8, 20], "strides": rows}]
            if rows
            else None
        )
        case(f"roll.{short}.{name}", "aten::roll", arguments, True, results)
    for name, self, repeats in (
        ("once", x, [1, 1, 1, 1]),
        ("last", some(dtype, [1, 30, 1]), [1, 1, 4]),
        ("wide", some(dtype, [1, 30, 1]), [1, 1, 80]),
        ("columns", some(dtype, [40, 8]), [1, 2]),
        ("images", some(dtype, [1, 5, 12], 1, [777, 12, 1]), [4, 1, 1]),
        ("all", some(dtype, [2, 3, 5]), [2, 3, 2]),
        ("more", some(dtype, [3, 5]), [2, 1, 3]),
        ("turned", turned, [1, 2, 1, 3]),
        ("none", some(dtype, [3, 5]), [2, 0]),
    ):
        arguments = [("self", self), ("repeats", repeats)]
        case(f"repeat.{short}.{name}", "aten::repeat", arguments, True)
    for name, sizes, factor in (
        ("twice", [2, 12, 5, 7], 2),
        ("four", [1, 48, 6, 8], 4),
    ):
        arguments = [("self", some(dtype, sizes)), ("upscale_factor", factor)]
        case(f"pixel_shuffle.{short}.{name}", "aten::pixel_shuffle", arguments, True)
        other = [sizes[0], sizes[1] // factor**2, sizes[2] * factor, sizes[3] * factor]
        arguments = [("self", some(dtype, other)), ("downscale_factor", factor)]
        case(
            f"pixel_unshuffle.{short}.{name}", "aten::pixel_unshuffle", arguments, True
        )


def pads(dtype: str, short: str) -> None:
    """Add constant_pad_nd and replication_pad2d."""
    number = 2.7 if dtype in FLOATS else 1 if dtype == "bool" else 77
    for name, self, pad, value in (
        ("corner", some(dtype, [1, 6, 8, 8]), [1, 0, 1, 0], 0),
        ("rows", some(dtype, [1, 10, 10, 24]), [0, 0, 0, 2, 0, 2], 0),
        ("around", some(dtype, [2, 3, 5, 7]), [1, 2, 3, 4], number),
        ("nothing", some(dtype, [1, 3, 8, 8]), [0, 0, 0, 0], 0),
        ("cut", some(dtype, [2, 3, 6, 9]), [-1, 2, 1, -2], number),
        ("three", some(dtype, [3, 4, 5]), [1, 1, 0, 2, 1, 0], number),
        (
            "channels_last",
            some(dtype, [2, 3, 5, 7], 1, [105, 1, 21, 3]),
            [1, 2, 0, 1],
            number,
        ),
    ):
        arguments: list[Argument] = [("self", self), ("pad", pad), ("value", value)]
        case(
            f"constant_pad_nd.{short}.{name}", "aten::constant_pad_nd", arguments, True
        )
    if dtype not in FLOATS:
        return
    for name, self, padding in (
        ("around", some(dtype, [2, 3, 5, 8]), [1, 1, 1, 1]),
        ("uneven", some(dtype, [1, 4, 6, 5]), [3, 0, 1, 9]),
        ("unbatched", some(dtype, [4, 6, 5]), [1, 2, 0, 1]),
        ("cut", some(dtype, [2, 3, 6, 9]), [-1, 2, 1, -2]),
        ("strided", some(dtype, [2, 3, 5, 7], 1, [105, 1, 21, 3]), [1, 2, 0, 1]),
    ):
        arguments = [("self", self), ("padding", padding)]
        # On CUDA the result is row-major whatever the input is; on the CPU it follows the input.
        row_major = [
            {"dtype": dtype, "sizes": [2, 3, 6, 10], "strides": [180, 60, 10, 1]}
        ]
        case(
            f"replication_pad2d.{short}.{name}",
            "aten::replication_pad2d",
            arguments,
            True,
            row_major if name == "strided" else None,
        )


def joins(dtype: str, short: str) -> None:
    """Add cat and stack."""
    last = [some(dtype, [2, c, 4, 6], c, [24 * c, 1, 6 * c, c]) for c in (3, 5, 8)]
    row, turned = (
        some(dtype, [2, 3, 8, 20]),
        some(dtype, [2, 3, 8, 20], 2, [480, 1, 60, 3]),
    )
    flat = [some(dtype, [30], seed) for seed in range(11)]
    for name, tensors, dim in (
        ("channels_last", last, 1),
        ("layouts", [row, turned, row], -2),
        (
            "turned",
            [some(dtype, [3, 40, 5], 3, [200, 1, 40]), some(dtype, [3, 40, 5], 4)],
            -1,
        ),
        (
            "points",
            [
                some(dtype, [40, 40, 1], 1, [1, 0, 1]),
                some(dtype, [40, 40, 1], 2, [0, 1, 1]),
            ],
            -1,
        ),
        ("eleven", flat, 0),
        ("empty", [some(dtype, [0]), row], 2),
        ("one", [turned], 0),
    ):
        case(
            f"cat.{short}.{name}",
            "aten::cat",
            [("tensors", tensors), ("dim", dim)],
            True,
        )
    square = [some(dtype, [20, 20], 1, [0, 1]), some(dtype, [20, 20], 2, [1, 0])]
    for name, tensors, dim in (
        ("last", [some(dtype, [1, 30], seed) for seed in range(4)], -1),
        ("first", [row, turned], 0),
        ("inside", [row, turned], -2),
        ("one", [some(dtype, [16, 16, 10, 2])], -2),
        ("broadcast", square, -1),
        ("eleven", flat, 1),
    ):
        case(
            f"stack.{short}.{name}",
            "aten::stack",
            [("tensors", tensors), ("dim", dim)],
            True,
        )


def mixed_joins() -> None:
    """Add cat and stack of several types."""
    for name, types in (
        ("bf16_f32", ("bfloat16", "float32")),
        ("f16_f32", ("float16", "float32")),
        ("bf16_f16", ("bfloat16", "float16")),
        ("i64_f16", ("int64", "float16")),
        ("bool_i64_i32", ("bool", "int64", "int32")),
        ("u8_bool", ("uint8", "bool")),
    ):
        tensors = [
            some(t, [1, 3, 9, 16], seed, [1296, 16, 48, 1])
            for seed, t in enumerate(types)
        ]
        case(f"cat.{name}", "aten::cat", [("tensors", tensors), ("dim", 2)], True)
        case(f"stack.{name}", "aten::stack", [("tensors", tensors), ("dim", -1)], True)


def windows(dtype: str, short: str) -> None:
    """Add im2col."""
    for name, self, kernel, dilation, padding, stride in (
        ("3x3", some(dtype, [1, 1, 22, 22]), [3, 3], [1, 1], [0, 0], [1, 1]),
        ("padded", some(dtype, [2, 3, 9, 7]), [3, 2], [1, 1], [1, 2], [1, 1]),
        ("steps", some(dtype, [2, 4, 12, 10]), [2, 2], [1, 1], [0, 0], [2, 2]),
        ("dilated", some(dtype, [1, 3, 11, 13]), [3, 3], [2, 1], [2, 0], [3, 2]),
        ("unbatched", some(dtype, [3, 8, 9]), [3, 3], [1, 1], [1, 1], [1, 1]),
        (
            "strided",
            some(dtype, [2, 3, 6, 7], 1, [126, 1, 21, 3]),
            [2, 3],
            [1, 1],
            [1, 0],
            [1, 1],
        ),
    ):
        arguments: list[Argument] = [
            ("self", self),
            ("kernel_size", kernel),
            ("dilation", dilation),
            ("padding", padding),
            ("stride", stride),
        ]
        case(f"im2col.{short}.{name}", "aten::im2col", arguments, True)
