"""Functions of one number: exponentials, roots, activations, powers, limits."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, Argument, case, tensor

# Name and arguments beside self; whether the host has the bits too where no NaN arises; whether a NaN keeps its bits.
EXACT, KEEPS = True, True
FUNCTIONS: tuple[tuple[str, list[Argument], bool, bool], ...] = (
    ("neg", [], EXACT, False),
    ("abs", [], EXACT, False),
    ("reciprocal", [], EXACT, False),
    ("sin", [], False, False),
    ("cos", [], False, False),
    ("exp", [], False, False),
    ("log", [], False, False),
    ("sqrt", [], False, False),
    ("rsqrt", [], False, False),
    ("tanh", [], False, False),
    ("gelu", [("approximate", "none")], False, False),
    ("gelu", [("approximate", "tanh")], False, False),
    ("hardsigmoid", [], EXACT, False),
    ("hardswish", [], EXACT, False),
    ("leaky_relu", [("negative_slope", 0.2)], EXACT, False),
    ("hardtanh", [("min_val", 0.0), ("max_val", 6.0)], EXACT, KEEPS),
    ("clamp", [("min", -0.3), ("max", 1)], EXACT, KEEPS),
    ("clamp", [("min", 1e-05), ("max", None)], EXACT, KEEPS),
    ("clamp", [("min", None), ("max", -0.0)], EXACT, KEEPS),
    ("clamp", [("min", 2.0), ("max", -2.0)], EXACT, KEEPS),
    ("clamp_min", [("min", 0.0)], EXACT, KEEPS),
    ("clamp_max", [("max", 0.7)], EXACT, KEEPS),
    ("pow.Tensor_Scalar", [("exponent", 0)], EXACT, KEEPS),
    ("pow.Tensor_Scalar", [("exponent", 1)], EXACT, KEEPS),
    ("pow.Tensor_Scalar", [("exponent", 2)], EXACT, False),
    ("pow.Tensor_Scalar", [("exponent", 3.0)], EXACT, False),
    ("pow.Tensor_Scalar", [("exponent", -2)], EXACT, False),
    ("pow.Tensor_Scalar", [("exponent", -1)], EXACT, False),
    ("pow.Tensor_Scalar", [("exponent", 0.5)], False, False),
    ("pow.Tensor_Scalar", [("exponent", -0.5)], False, False),
    ("pow.Tensor_Scalar", [("exponent", 4)], False, False),
    ("pow.Tensor_Scalar", [("exponent", 15)], False, False),
    ("pow.Tensor_Scalar", [("exponent", 2.001)], False, False),
    ("pow.Tensor_Scalar", [("exponent", 1 / 15)], False, False),
    ("rsub.Scalar", [("other", 1), ("alpha", 1)], EXACT, False),
    ("rsub.Scalar", [("other", 0.1), ("alpha", 1.7)], EXACT, False),
)
IN_PLACE = ("hardsigmoid", "hardswish", "leaky_relu", "hardtanh", "clamp", "gelu")


def title(name: str, more: list[Argument]) -> str:
    """Name a function with its arguments."""
    return ".".join([name.partition(".")[0], *(str(value) for _, value in more)])


def add() -> None:
    """Add functions of one number."""
    for name, more, exact, keeps in FUNCTIONS:
        operation = f"aten::{name}"
        for dtype in FLOATS:
            called = f"{title(name, more)}.{SHORT[dtype]}"
            for fill, count in (
                ("wide", 1003),
                ("positive", 509),
                ("edges", 22),
                ("bits", 20011),
            ):
                good = (
                    exact
                    and (keeps or fill in ("wide", "positive"))
                    or name == "sqrt"
                    and fill == "positive"
                )
                arguments: list[Argument] = [
                    ("self", tensor(dtype, [count], 0, fill)),
                    *more,
                ]
                case(f"{called}.{fill}", operation, arguments, good)
            turned: Any = tensor(dtype, [20, 30], 3, strides=[1, 20])
            case(f"{called}.turned", operation, [("self", turned), *more], exact)
            if name in IN_PLACE:
                part = tensor(dtype, [5, 6, 7], 4, strides=[84, 7, 1], offset=42)
                case(
                    f"{called}.in_place",
                    f"{operation}_",
                    [("self", part), *more],
                    exact,
                )
    for dtype in FLOATS:
        for base, fill in (
            (10000, "unit"),
            (0.5, "wide"),
            (1, "bits"),
            (-2.5, "edges"),
            (10000, "edges"),
        ):
            exponent = tensor(dtype, [1003], 0, fill)
            case(
                f"pow_of.{base}.{SHORT[dtype]}.{fill}",
                "aten::pow.Scalar",
                [("self", base), ("exponent", exponent)],
                base == 1,
            )
    whole = tensor("int64", [4, 33], 5, "around 100")
    for name, more in (
        ("sqrt", []),
        ("sin", []),
        ("neg", []),
        ("abs", []),
        ("clamp", [("min", -7), ("max", 60)]),
    ):
        case(
            f"{name}.i64",
            f"aten::{name}",
            [("self", whole), *more],
            name not in ("sqrt", "sin"),
        )
