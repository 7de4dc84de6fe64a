"""Operations on pairs: comparisons, choices, quotients that are rounded, and sums and products of mixed types."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor

NAMES = {"int64": "i64", "int32": "i32", "uint8": "u8", "bool": "bool", **SHORT}


def comparisons(dtype: str) -> None:
    """Add comparisons."""
    short = SHORT[dtype]
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        pair: list[Argument] = [
            ("self", tensor(dtype, [484], 0, "edges")),
            ("other", tensor(dtype, [484], 1, "edges")),
        ]
        case(f"{name}.{short}.edges", f"aten::{name}.Tensor", pair, True)
        for number in (0.01, 1, 1.001, -0.0):
            for fill, count in (("ties", 1003), ("edges", 22)):
                arguments = [
                    ("self", tensor(dtype, [count], 0, fill)),
                    ("other", number),
                ]
                case(
                    f"{name}.{short}.{number}.{fill}",
                    f"aten::{name}.Scalar",
                    arguments,
                    True,
                )
    image, row = (
        tensor(dtype, [4, 5, 6], 1, "ties"),
        tensor("float32", [5, 1], 2, "ties"),
    )
    case(
        f"gt.{short}_f32.broadcast",
        "aten::gt.Tensor",
        [("self", image), ("other", row)],
        True,
    )
    point = tensor("float32", [], 2)
    case(
        f"le.{short}.point",
        "aten::le.Tensor",
        [("self", image), ("other", point)],
        True,
    )
    case(
        f"logical_not.{short}",
        "aten::logical_not",
        [("self", tensor(dtype, [22], 0, "edges"))],
        True,
    )
    mask = tensor("bool", [22], 0, "below 2")
    for name in ("logical_and", "logical_or"):
        pair = [("self", tensor(dtype, [22], 0, "edges")), ("other", mask)]
        case(f"{name}.{short}", f"aten::{name}", pair, True)


def choices(dtype: str) -> None:
    """Add choices by masks, maxima."""
    short = SHORT[dtype]
    for sizes, fill in (([20011], "bits"), ([484], "edges")):
        x, y, mask = (
            tensor(dtype, sizes, 1, fill),
            tensor(dtype, sizes, 2, fill),
            tensor("bool", sizes, 3, "below 2"),
        )
        case(
            f"where.{short}.{fill}",
            "aten::where.self",
            [("condition", mask), ("self", x), ("other", y)],
            True,
        )
        for name in ("masked_fill", "masked_fill_"):
            arguments: list[Argument] = [("self", x), ("mask", mask), ("value", 0.1)]
            case(f"{name}.{short}.{fill}", f"aten::{name}.Scalar", arguments, True)
        for name in ("maximum", "minimum"):
            pair = [
                ("self", tensor(dtype, sizes, 0, fill)),
                ("other", tensor(dtype, sizes, 1, fill)),
            ]
            case(f"{name}.{short}.{fill}", f"aten::{name}", pair, True)
    image, channel = tensor(dtype, [3, 5, 6, 7], 1), tensor(dtype, [5, 1, 1], 2)
    rows, last = (
        tensor("bool", [3, 1, 6, 1], 3, "below 2"),
        tensor("bool", [1, 1, 1, 7], 4, "below 2"),
    )
    single = tensor("float32", [], 1)
    for name, condition, x, y in (
        ("channels", rows, image, channel),
        ("point", rows, image, single),
        ("points", last, single, channel),
    ):
        case(
            f"where.{short}.{name}",
            "aten::where.self",
            [("condition", condition), ("self", x), ("other", y)],
            True,
        )
    for name, value in (("inf", float("-inf")), ("nan", float("nan"))):
        spec = {"real": str(value)}
        case(
            f"masked_fill.{short}.{name}",
            "aten::masked_fill.Scalar",
            [("self", image), ("mask", rows), ("value", spec)],
            True,
        )
    part = tensor(dtype, [3, 6, 7], 4, strides=[84, 7, 1], offset=42)
    case(
        f"masked_fill_.{short}.part",
        "aten::masked_fill_.Scalar",
        [("self", part), ("mask", tensor("bool", [1, 7], 4, "below 2")), ("value", 3)],
        True,
    )
    case(
        f"fill_.{short}",
        "aten::fill_.Tensor",
        [("self", part), ("value", tensor("float32", [], 9))],
        True,
    )


def quotients(dtype: str) -> None:
    """Add quotients that are rounded."""
    short = SHORT[dtype]
    for mode in ("floor", "trunc"):
        rounding: Argument = ("rounding_mode", mode)
        for number in (2, -0.3, 0.1, 0):
            for fill, count in (("wide", 1003), ("edges", 22)):
                arguments = [
                    ("self", tensor(dtype, [count], 0, fill)),
                    ("other", number),
                    rounding,
                ]
                case(
                    f"div.{mode}.{short}.{number}.{fill}",
                    "aten::div.Tensor_mode",
                    arguments,
                    fill == "wide" and number != 0,
                )
        pair: list[Argument] = [
            ("self", tensor(dtype, [2003], 0, "wide")),
            ("other", tensor(dtype, [2003], 1, "wide")),
        ]
        case(
            f"div.{mode}.{short}.wide", "aten::div.Tensor_mode", [*pair, rounding], True
        )
        pair = [
            ("self", tensor(dtype, [484], 0, "edges")),
            ("other", tensor(dtype, [484], 1, "edges")),
        ]
        case(
            f"div.{mode}.{short}.edges",
            "aten::div.Tensor_mode",
            [*pair, rounding],
            False,
        )


def mixed() -> None:
    """Add sums, differences, products, quotients of mixed and of whole types."""
    for left, right in (
        ("float32", "bfloat16"),
        ("float16", "float32"),
        ("float16", "bfloat16"),
        ("int64", "float32"),
        ("bfloat16", "int64"),
        ("float16", "bool"),
        ("int64", "int64"),
        ("int32", "int64"),
        ("uint8", "bool"),
        ("int32", "uint8"),
        ("bool", "bool"),
    ):
        for name, more in (
            ("add", [("alpha", 1)]),
            ("sub", [("alpha", 1)]),
            ("mul", []),
            ("div", []),
        ):
            if name == "sub" and "bool" in (left, right):
                continue
            fills = [fill_of(left), fill_of(right)]
            for shape, sizes in (("plain", [4, 33]), ("row", [33]), ("point", [])):
                pair: list[Argument] = [
                    ("self", tensor(left, [4, 33], 0, fills[0])),
                    (
                        "other",
                        tensor(
                            right,
                            sizes,
                            1,
                            "positive"
                            if name == "div" and fills[1] == "spread"
                            else fills[1],
                        ),
                    ),
                ]
                exact = name != "div" or fills[1] == "spread"
                called = f"{name}.{NAMES[left]}_{NAMES[right]}.{shape}"
                case(called, f"aten::{name}.Tensor", [*pair, *more], exact)
        for name in ("gt", "eq"):
            pair = [
                ("self", tensor(left, [4, 33], 0, fill_of(left))),
                ("other", tensor(right, [33], 1, fill_of(right))),
            ]
            case(
                f"{name}.{NAMES[left]}_{NAMES[right]}",
                f"aten::{name}.Tensor",
                pair,
                True,
            )
    for dtype in ("int64", "int32", "uint8", "bool"):
        x = tensor(dtype, [4, 33], 0, fill_of(dtype))
        for number in (3, 0.5):
            case(
                f"add.{NAMES[dtype]}.{number}",
                "aten::add.Tensor",
                [("self", x), ("other", number), ("alpha", 1)],
                True,
            )
            case(
                f"mul.{NAMES[dtype]}.{number}",
                "aten::mul.Tensor",
                [("self", x), ("other", number)],
                True,
            )
            case(
                f"div.{NAMES[dtype]}.{number}",
                "aten::div.Tensor",
                [("self", x), ("other", number)],
                True,
            )
            case(
                f"ge.{NAMES[dtype]}.{number}",
                "aten::ge.Scalar",
                [("self", x), ("other", number)],
                True,
            )
        case(f"bitwise_not.{NAMES[dtype]}", "aten::bitwise_not", [("self", x)], True)
        case(f"logical_not.{NAMES[dtype]}", "aten::logical_not", [("self", x)], True)
        y = tensor(dtype, [33], 1, fill_of(dtype))
        for name in (
            "bitwise_and.Tensor",
            "bitwise_or.Tensor",
            "maximum",
            "minimum",
            "logical_and",
            "logical_or",
        ):
            case(
                f"{name.partition('.')[0]}.{NAMES[dtype]}",
                f"aten::{name}",
                [("self", x), ("other", y)],
                True,
            )
        mask = tensor("bool", [4, 1], 2, "below 2")
        case(
            f"masked_fill.{NAMES[dtype]}",
            "aten::masked_fill.Scalar",
            [("self", x), ("mask", mask), ("value", 1)],
            True,
        )
        case(
            f"where.{NAMES[dtype]}",
            "aten::where.self",
            [("condition", mask), ("self", x), ("other", y)],
            True,
        )
    for left, right in (
        ("bfloat16", "float32"),
        ("float16", "float32"),
        ("float32", "int64"),
    ):
        for name, more in (("add_", [("alpha", 1)]), ("mul_", [])):
            pair = [
                ("self", tensor(left, [4, 33], 0, "spread")),
                ("other", tensor(right, [33], 1, fill_of(right))),
            ]
            case(
                f"{name}.{NAMES[left]}_{NAMES[right]}",
                f"aten::{name}.Tensor",
                [*pair, *more],
                True,
            )


def fill_of(dtype: str) -> str:
    """Choose a fill."""
    return {
        "int64": "around 1000",
        "int32": "around 100000",
        "uint8": "below 256",
        "bool": "below 2",
    }.get(dtype, "spread")


def add() -> None:
    """Add operations on pairs."""
    for dtype in FLOATS:
        comparisons(dtype)
        choices(dtype)
        quotients(dtype)
    mixed()
