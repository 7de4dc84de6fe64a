"""Conversions, layouts, concatenation."""

from __future__ import annotations

from casekit import SHORT, Argument, case, tensor


def add() -> None:
    """Add conversions, layouts, concatenation."""
    rest: list[Argument] = [
        ("layout", None),
        ("device", None),
        ("pin_memory", None),
        ("non_blocking", False),
    ]
    for source, target in (
        ("float32", "bfloat16"),
        ("float32", "float16"),
        ("bfloat16", "float32"),
        ("float16", "float32"),
    ):
        for fill, sizes, strides in (
            ("bits", [4001], None),
            ("edges", [22], None),
            ("spread", [40, 50], [1, 40]),
        ):
            x = tensor(source, sizes, 0, fill, strides)
            arguments = [
                ("self", x),
                ("dtype", {"as": target}),
                *rest,
                ("memory_format", None),
            ]
            name = f"to.{SHORT[source]}_{SHORT[target]}.{fill}"
            case(name, "aten::_to_copy", arguments, True)
    for dtype in ("float32", "bfloat16"):
        short = SHORT[dtype]
        last = tensor(dtype, [2, 5, 4, 3], strides=[60, 1, 15, 5])
        arguments = [("self", last), ("memory_format", {"memory_format": "contiguous"})]
        case(f"clone.{short}.contiguous", "aten::clone", arguments, True)
        part = tensor(dtype, [2, 8, 5, 6], 2, strides=[480, 30, 6, 1], offset=240)
        whole = tensor(dtype, [2, 8, 5, 6], 3)
        case(
            f"cat.{short}.channels",
            "aten::cat",
            [("tensors", [part, whole, part]), ("dim", 1)],
            True,
        )
        case(
            f"cat.{short}.images",
            "aten::cat",
            [("tensors", [whole, part]), ("dim", 0)],
            True,
        )
        flat = [
            tensor(dtype, [2, 9, 35], 4),
            tensor(dtype, [2, 9, 12], 5),
            tensor(dtype, [2, 9, 3], 6),
        ]
        case(f"cat.{short}.last", "aten::cat", [("tensors", flat), ("dim", 2)], True)
