"""Sums, means and softmax, whose order depends on sizes, strides and alignment."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor
from samebits_reference import opcases


def add() -> None:
    """Add sums, means and softmax, whose order depends on sizes, strides and alignment."""
    shapes: list[
        tuple[str, list[int], list[int] | None, int, list[int] | None, bool]
    ] = [
        ("pixels", [1, 48, 20, 20], None, 0, [-1, -2], True),
        ("vectors", [5, 405], None, 0, [1], False),
        ("vectors_misaligned", [5, 405], None, 1, [1], False),
        ("vectors_over_warps", [3, 9001], None, 0, [1], False),
        ("vectors_over_blocks", [100003], None, 3, [0], False),
        ("short", [7, 3], None, 0, [1], False),
        ("four_outputs", [1, 4, 16, 84], None, 0, [2], False),
        ("two_outputs", [2, 16, 42], None, 0, [1], False),
        ("one_output", [2, 19, 7], None, 0, [1], True),
        ("outputs_misaligned", [19, 8], None, 1, [0], False),
        ("outputs_over_warps", [3000, 8], None, 0, [0], False),
        ("outputs_over_blocks", [30000, 4], None, 0, [0], False),
        ("outer_and_inner", [6, 5, 7, 3], None, 0, [0, 2], False),
        ("images_and_pixels", [4, 5, 9, 11], None, 0, [0, 2, 3], False),
        ("channels_last", [2, 8, 5, 6], [240, 1, 48, 8], 0, [2, 3], True),
        ("gaps", [6, 200], [256, 1], 0, [1], False),
        ("everything", [3, 50, 70], None, 0, None, False),
    ]
    for name, sizes, strides, offset, dims, keepdim in shapes:
        for dtype, out in (
            *((dtype, dtype) for dtype in FLOATS),
            ("bfloat16", "float32"),
            ("float16", "float32"),
        ):
            short = SHORT[dtype] + (f"_{SHORT[out]}" if out != dtype else "")
            for operation in ("sum.dim_IntList", "mean.dim"):
                arguments: list[Argument] = [
                    ("self", tensor(dtype, sizes, 7, strides=strides, offset=offset)), ("dim", dims), ("keepdim", keepdim),
                    ("dtype", {"as": out} if out != dtype else None),
                ]  # fmt: skip
                case(
                    f"{operation.partition('.')[0]}.{short}.{name}",
                    f"aten::{operation}",
                    arguments,
                    True,
                )
    for elements in (1 << 20, 3_000_001):
        arguments = [
            ("self", tensor("float32", [elements], 8)),
            ("dim", None),
            ("keepdim", False),
            ("dtype", None),
        ]
        case(f"sum.f32.{elements}", "aten::sum.dim_IntList", arguments, True)
    for dtype in FLOATS:
        for name, sizes, strides, offset, dim in (
            ("spatial", [1, 4, 16, 84], None, 0, 2),
            ("spatial_shared", [2, 100, 50], None, 0, 1),
            ("rows_1", [7, 1], None, 0, 1),
            ("rows_5", [50, 5], None, 0, -1),
            ("rows_33", [9, 33], None, 0, 1),
            ("rows_200", [5, 200], None, 0, 1),
            ("rows_1000", [3, 1000], None, 0, 1),
            ("rows_2048", [2, 2048], None, 0, 1),
            ("elements", [2, 2500], None, 0, 1),
            ("vectors", [2, 9232], None, 0, 1),
            ("vectors_from_aligned", [2, 9223], None, 1, 1),
            ("long", [1, 28000], None, 0, 1),
            ("transposed", [6, 40], [1, 6], 0, 1),
        ):
            x = tensor(dtype, sizes, 9, strides=strides, offset=offset)
            arguments = [("self", x), ("dim", dim), ("half_to_float", False)]
            case(f"softmax.{SHORT[dtype]}.{name}", "aten::_softmax", arguments, False)
        for width in (22, 3000):
            x = tensor(dtype, [2, width], 0, "edges")
            arguments = [("self", x), ("dim", 1), ("half_to_float", False)]
            case(
                f"softmax.{SHORT[dtype]}.edges_{width}",
                "aten::_softmax",
                arguments,
                False,
            )
        # Exponentials that are denormal: the one rounding that tells the kernels apart.
        arguments = [
            ("self", tensor(dtype, [60, 64, 3], 10, "wide")),
            ("dim", 1),
            ("half_to_float", False),
        ]
        case(f"softmax.{SHORT[dtype]}.denormal", "aten::_softmax", arguments, False)
    for name, sizes in (
        ("rows", [3, 100]),
        ("spatial", [2, 16, 5]),
        ("vectors", [2, 4096]),
    ):
        # The CPU has no such conversion.
        arguments = [
            ("self", tensor("float16", sizes, 9)),
            ("dim", 1),
            ("half_to_float", True),
        ]
        results = [
            {"dtype": "float32", "sizes": sizes, "strides": opcases.contiguous(sizes)}
        ]
        case(f"softmax.f16_f32.{name}", "aten::_softmax", arguments, False, results)
