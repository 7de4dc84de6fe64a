"""Reductions whose order does not matter: the largest and smallest element with its place, all, any, products of integers."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor

SHAPES: tuple[tuple[str, list[int], list[int] | None, int, bool], ...] = (
    ("rows_80", [1, 100, 80], None, -1, False),
    ("rows_81", [1, 100, 81], None, -1, True),
    ("rows_2", [1, 500, 2], None, -1, False),
    ("rows_4", [1, 300, 4], None, -1, True),
    ("rows_1", [30, 1], None, 1, False),
    ("long_rows", [3, 3000], None, 1, False),
    ("columns", [4, 50, 30], None, 1, False),
    ("first", [200, 7], None, 0, True),
    ("turned", [5, 40, 6], [240, 1, 40], 1, False),
    ("channels_last", [2, 12, 5, 6], [360, 1, 72, 12], 1, False),
    ("vector", [700], None, 0, False),
)


def add() -> None:
    """Add max.dim, min.dim, all.dim, any.dim, prod.dim_int."""
    for name, sizes, strides, dim, keepdim in SHAPES:
        more: list[Argument] = [("dim", dim), ("keepdim", keepdim)]
        for operation in ("max", "min"):
            for dtype in FLOATS:
                for fill in ("spread", "ties", "edges", "bits"):
                    x = tensor(dtype, sizes, 0 if fill == "edges" else 7, fill, strides)
                    case(
                        f"{operation}.{SHORT[dtype]}.{fill}.{name}",
                        f"aten::{operation}.dim",
                        [("self", x), *more],
                        True,
                    )
            for dtype in ("int64", "int32", "uint8", "bool"):
                fill = {"uint8": "below 60", "bool": "below 2"}.get(dtype, "around 30")
                x = tensor(dtype, sizes, 8, fill, strides)
                case(
                    f"{operation}.{dtype}.{name}",
                    f"aten::{operation}.dim",
                    [("self", x), *more],
                    True,
                )
        for operation, share in (("all", 40), ("any", 40)):
            for dtype in ("bool", "uint8", "int64", "float32", "bfloat16"):
                x = tensor(
                    dtype,
                    sizes,
                    9,
                    "edges" if dtype in FLOATS else f"below {share}",
                    strides,
                )
                case(
                    f"{operation}.{dtype}.{name}",
                    f"aten::{operation}.dim",
                    [("self", x), *more],
                    True,
                )
        for dtype in ("int64", "int32", "bool"):
            x = tensor(dtype, sizes, 10, "below 1000", strides)
            case(
                f"prod.{dtype}.{name}",
                "aten::prod.dim_int",
                [("self", x), *more, ("dtype", None)],
                True,
            )
    # A NaN of bf16 loses its bits where PyTorch's threads pass it on: which do depends on alignment and on the split of a line
    # over a block and over blocks. In the fill of seed 2 the first NaN is element 9680 of the buffer.
    shared = [
        ("blocks", [300000], offset, "edges", 2) for offset in (0, 80, 7760, 7761)
    ]
    shared += [("rows", [3, 401], 1, "bits", seed) for seed in range(6)]
    for name, sizes, offset, fill, seed in shared:
        x = tensor("bfloat16", sizes, seed, fill, None, offset)
        arguments: list[Argument] = [("self", x), ("dim", -1), ("keepdim", False)]
        case(
            f"max.bf16.shared_{name}.{offset}.{seed}", "aten::max.dim", arguments, True
        )
