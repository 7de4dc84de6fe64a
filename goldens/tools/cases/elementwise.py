"""Sums, products, activations."""

from __future__ import annotations

from casekit import FLOATS, SHORT, case, tensor


def add() -> None:
    """Add sums, products, activations."""
    for dtype in FLOATS:
        short = SHORT[dtype]
        x, y = tensor(dtype, [1003]), tensor(dtype, [1003], 2)
        for name, more in (
            ("add", [("alpha", 1)]),
            ("sub", [("alpha", 1)]),
            ("mul", []),
            ("div", []),
        ):
            operation = f"aten::{name}.Tensor"
            case(f"{name}.{short}", operation, [("self", x), ("other", y), *more], True)
            for fill, count, exact in (("edges", 484, False), ("finite", 324, True)):
                pair = [
                    ("self", tensor(dtype, [count], 0, fill)),
                    ("other", tensor(dtype, [count], 1, fill)),
                ]
                case(
                    f"{name}.{short}.{fill}",
                    operation,
                    [*pair, *more],
                    exact and name != "div",
                )
        case(
            f"add.{short}.alpha",
            "aten::add.Tensor",
            [("self", x), ("other", y), ("alpha", 0.3)],
            True,
        )
        case(
            f"add.{short}.number",
            "aten::add.Tensor",
            [("self", x), ("other", 0.1), ("alpha", 1)],
            True,
        )
        case(
            f"mul.{short}.number",
            "aten::mul.Tensor",
            [("self", x), ("other", 0.1)],
            True,
        )
        case(
            f"add.{short}.in_place",
            "aten::add_.Tensor",
            [("self", x), ("other", y), ("alpha", 1)],
            True,
        )
        channel = tensor(dtype, [5, 1, 1], 3)
        image = tensor(dtype, [2, 5, 6, 7])
        case(
            f"add.{short}.broadcast",
            "aten::add.Tensor",
            [("self", image), ("other", channel), ("alpha", 1)],
            True,
        )
        part = tensor(dtype, [2, 5, 6, 7], 4, strides=[420, 42, 7, 1], offset=210)
        case(
            f"mul.{short}.strided",
            "aten::mul.Tensor",
            [("self", image), ("other", part)],
            True,
        )
        turned = tensor(dtype, [2, 5, 6, 7], 4, strides=[210, 1, 35, 5])
        case(
            f"add.{short}.layouts",
            "aten::add.Tensor",
            [("self", turned), ("other", image), ("alpha", 1)],
            True,
        )
        for name in ("relu", "relu_", "silu", "silu_", "sigmoid"):
            for fill, count in (("wide", 1003), ("edges", 22)):
                # What is done with a NaN's bits differs between CPU and GPU.
                exact = name.startswith("relu") and fill == "wide"
                case(
                    f"{name}.{short}.{fill}",
                    f"aten::{name}",
                    [("self", tensor(dtype, [count], 0, fill))],
                    exact,
                )
        case(
            f"silu.{short}.strided",
            "aten::silu",
            [("self", tensor(dtype, [40, 30], strides=[1, 40]))],
            False,
        )
    mixed = [
        ("self", tensor("bfloat16", [4, 5, 6])),
        ("other", tensor("float32", [5, 6], 2)),
    ]
    case("add.bf16_f32", "aten::add.Tensor", [*mixed, ("alpha", 1)], True)
    case(
        "mul.f32_bf16",
        "aten::mul.Tensor",
        [("self", mixed[1][1]), ("other", mixed[0][1])],
        True,
    )
