"""Norms of order 2, over the ways in which a reduction is divided."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add norms of every type, and of 16-bit types to float32, which load 4 elements at once where sums load 8."""
    shapes: list[tuple[str, list[int], list[int] | None, int, list[int] | None, bool]] = [
        ("classes", [1, 512], None, 0, [-1], True),
        ("classes_768", [1, 768], None, 0, [-1], True),
        ("tail", [5, 1003], None, 0, [1], False),
        ("misaligned", [5, 1003], None, 1, [1], False),
        ("short", [7, 3], None, 0, [1], False),
        ("over_warps", [2, 9001], None, 0, [1], False),
        ("over_blocks", [150001], None, 3, None, False),
        ("four_outputs", [40, 8], None, 0, [0], True),
        ("two_outputs", [40, 6], None, 0, [0], False),
        ("outputs_over_warps", [2000, 8], None, 0, [0], False),
        ("outer_and_inner", [6, 5, 7, 3], None, 0, [0, 2], False),
        ("channels_last", [2, 8, 5, 6], [240, 1, 48, 8], 0, [2, 3], True),
    ]
    for dtype, out in (
        *((dtype, dtype) for dtype in FLOATS), ("bfloat16", "float32"), ("float16", "float32"),
    ):  # fmt: skip
        short = SHORT[dtype] + (f"_{SHORT[out]}" if out != dtype else "")
        for name, sizes, strides, offset, dims, keepdim in shapes:
            for fill in ("spread", "wide"):
                arguments: list[Argument] = [
                    ("self", tensor(dtype, sizes, 7, fill, strides, offset)), ("ord", 2.0), ("dim", dims),
                    ("keepdim", keepdim), ("dtype", {"as": out} if out != dtype else None),
                ]  # fmt: skip
                case(
                    f"vector_norm.{short}.{name}.{fill}",
                    "aten::linalg_vector_norm",
                    arguments,
                    True,
                )
        arguments = [
            ("self", tensor(dtype, [44, 11], 0, "edges")), ("ord", 2), ("dim", [1]), ("keepdim", False),
            ("dtype", {"as": out} if out != dtype else None),
        ]  # fmt: skip
        case(f"vector_norm.{short}.edges", "aten::linalg_vector_norm", arguments, False)
