"""The largest and the smallest elements with their places: selection by radix, then a sort, each with its order of ties."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor


def add() -> None:
    """Add topk."""
    for dtype in FLOATS:
        for fill in ("spread", "ties", "edges", "bits"):
            for name, sizes, strides, k, dim in (
                ("few", [50, 33], None, 4, -1),
                ("few_strided", [12, 192, 5], None, 4, 1),
                ("few_apart", [4, 5, 60], [300, 1, 5], 7, -1),
                ("network", [9, 200], None, 32, 1),
                ("network_whole", [3, 32], None, 32, 1),
                ("radix_from", [5, 200], None, 33, 1),
                ("radix", [2, 1000], None, 100, -1),
                ("radix_300", [1, 8400], None, 300, -1),
                ("radix_whole", [2, 300], None, 300, 1),
                ("radix_columns", [300, 3], None, 60, 0),
                ("radix_1500", [1, 2916], None, 1500, 1),
                ("one", [7, 90], None, 1, 1),
                ("blocks", [2, 24000], None, 50, 1),
            ):
                for largest in (True, False):
                    if name in ("radix_1500", "blocks") and not largest:
                        continue
                    arguments: list[Argument] = [
                        (
                            "self",
                            tensor(
                                dtype, sizes, 0 if fill == "edges" else 3, fill, strides
                            ),
                        ),
                        ("k", k),
                        ("dim", dim),
                        ("largest", largest),
                        ("sorted", True),
                    ]
                    order = "" if largest else ".smallest"
                    case(
                        f"topk.{SHORT[dtype]}.{fill}.{name}{order}",
                        "aten::topk",
                        arguments,
                        True,
                    )
            arguments = [
                ("self", tensor(dtype, [5, 400], 0, fill)),
                ("k", 50),
                ("dim", 1),
                ("largest", True),
                ("sorted", False),
            ]
            case(f"topk.{SHORT[dtype]}.{fill}.unsorted", "aten::topk", arguments, True)
    for dtype, short in (("int64", "i64"), ("int32", "i32"), ("uint8", "u8")):
        for k in (5, 60):
            arguments = [
                (
                    "self",
                    tensor(
                        dtype,
                        [6, 150],
                        4,
                        "around 40" if dtype != "uint8" else "below 40",
                    ),
                ),
                ("k", k),
                ("dim", -1),
                ("largest", True),
                ("sorted", True),
            ]
            case(f"topk.{short}.{k}", "aten::topk", arguments, True)
