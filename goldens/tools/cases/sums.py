"""Sums and means in further forms of real models: of integers and truth values, of few elements, over channels."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor

Shape = tuple[str, list[int], list[int] | None, list[int] | None, bool]


def add() -> None:
    """Add sums of all types, and means."""
    floats: tuple[Shape, ...] = (
        ("points", [8, 4, 30, 12], None, [-1], False), ("points_2", [16, 4, 100, 2], None, [-1], False),
        ("distances", [120, 33], None, [-1], False), ("joints", [4, 1, 10, 2, 17], None, [-1], False),
        ("prototypes", [1, 32, 40, 20], None, [1], False), ("pose", [1, 17, 160, 4], None, [1], False),
        ("boxes", [1, 4, 16, 210], None, [2], False), ("deblur", [1, 9, 4, 32, 32], None, [1], False),
        ("channels", [1, 256, 20, 20], None, [1], True), ("channels_many", [1, 512, 10, 8], None, [1], True),
        ("channels_wide", [1, 32, 160, 160], None, [1], True), ("heads", [1, 8, 30, 30], None, [1], False),
        ("heads_18", [6, 8, 18, 18], None, [1], False), ("tokens", [1, 100, 64], None, [-1], True),
        ("images", [2, 1, 160, 192], None, [0], False), ("corners", [1, 30, 4, 4], None, [-1], True),
        ("keypoints", [1, 60, 17, 2], None, [2], True), ("pooled", [1, 96, 40, 40], None, [-1, -2], True),
        ("pooled_100", [1, 64, 10, 10], None, [-1, -2], True), ("pooled_large", [1, 6, 160, 160], None, [2, 3], True),
        ("rows", [1, 24, 80, 80], None, [3], True), ("columns", [1, 24, 80, 80], None, [2], True),
        ("pooled_last", [1, 768, 20, 20], [307200, 1, 15360, 768], [-1, -2], True),
        ("pooled_last_46", [1, 64, 46, 46], [135424, 1, 2944, 64], [-1, -2], True),
    )  # fmt: skip
    for operation in ("sum.dim_IntList", "mean.dim"):
        for dtype in FLOATS:
            for name, sizes, strides, dims, keepdim in floats:
                add_one(operation, dtype, None, name, sizes, strides, dims, keepdim)
        # Recorded under autocast: a dtype that is the input's already.
        add_one(operation, "float32", "float32", *floats[0])
    integers: tuple[Shape, ...] = (
        ("mask", [1, 40], None, [1], False), ("rows", [5, 1003], None, [1], True),
        ("columns", [30, 14], None, [0], False), ("all", [3, 50, 70], None, None, False),
        ("gaps", [6, 20], [80, 3], [1], False),
    )  # fmt: skip
    for dtype, fill in (*((dtype, "spread") for dtype in FLOATS), ("bool", "below 2"), ("int64", "around 100000")):  # fmt: skip
        for operation in ("sum", "mean") if dtype in FLOATS else ("sum",):
            everything: list[Argument] = [("self", tensor(dtype, [1, 64, 101], 6, fill)), ("dtype", None)]  # fmt: skip
            case(f"{operation}.{SHORT.get(dtype, dtype)}.whole", f"aten::{operation}", everything, True)  # fmt: skip
    for dtype, fill in (("bool", "below 2"), ("int64", "around 100000")):
        for name, sizes, strides, dims, keepdim in integers:
            add_one("sum.dim_IntList", dtype, None, name, sizes, strides, dims, keepdim, fill)  # fmt: skip


def add_one(
    operation: str,
    dtype: str,
    out: str | None,
    name: str,
    sizes: list[int],
    strides: list[int] | None,
    dims: list[int] | None,
    keepdim: bool,
    fill: str = "spread",
) -> None:
    """Add a sum or a mean."""
    arguments: list[Argument] = [
        ("self", tensor(dtype, sizes, 6, fill, strides)), ("dim", dims), ("keepdim", keepdim),
        ("dtype", {"as": out} if out else None),
    ]  # fmt: skip
    short = SHORT.get(dtype, dtype) + (f"_{SHORT[out]}" if out else "")
    title = f"{operation.partition('.')[0]}.{short}.real_{name}"
    case(title, f"aten::{operation}", arguments, True)
