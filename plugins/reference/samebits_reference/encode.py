"""Turns the arguments of a call into messages: complete, in schema order, with the schema's defaults filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from samebits_wire import recording_pb2 as pb

_DTYPES = {
    torch.bool: pb.DTYPE_BOOL,
    torch.uint8: pb.DTYPE_UINT8,
    torch.int8: pb.DTYPE_INT8,
    torch.int16: pb.DTYPE_INT16,
    torch.int32: pb.DTYPE_INT32,
    torch.int64: pb.DTYPE_INT64,
    torch.float16: pb.DTYPE_FLOAT16,
    torch.bfloat16: pb.DTYPE_BFLOAT16,
    torch.float32: pb.DTYPE_FLOAT32,
    torch.float64: pb.DTYPE_FLOAT64,
}
_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous",
    torch.preserve_format: "preserve",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
}

ValueOf = Callable[[torch.Tensor], int]


class CannotEncodeError(ValueError):
    """What was seen has no form in a recording."""


def dtype(of: torch.dtype) -> pb.DType:
    """Give the wire's number of a dtype."""
    try:
        return _DTYPES[of]
    except KeyError:
        raise CannotEncodeError(f"dtype {of} is not in recordings") from None


def arguments(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], value_of: ValueOf
) -> list[pb.Argument]:
    """Encode the arguments of a call."""
    out = []
    for position, formal in enumerate(func._schema.arguments):
        if position < len(args) and not formal.kwarg_only:
            actual = args[position]
        elif formal.name in kwargs:
            actual = kwargs[formal.name]
        else:
            actual = formal.default_value
        out.append(argument(formal.name, actual, formal.type, value_of))
    return out


def results(func: torch._ops.OpOverload, result: Any, value_of: ValueOf) -> list[pb.Argument]:
    """Encode what a call gave."""
    formals = func._schema.returns
    if len(formals) == 1:
        result = (result,)
    pairs = zip(formals, result or (), strict=True)
    return [argument(formal.name, item, formal.type, value_of) for formal, item in pairs]


def argument(name: str, actual: Any, formal: Any, value_of: ValueOf) -> pb.Argument:
    """Encode one argument. formal is its type in the schema."""
    out = pb.Argument(name=name)
    kind = _element(formal)
    if kind.kind() == "ListType" and actual is not None:
        element = kind.getElementType()
        items = actual if isinstance(actual, list | tuple) else (actual,)  # int[2] stride=1
        out.list.SetInParent()
        out.list.items.extend(argument("", item, element, value_of) for item in items)
        return out
    match actual:
        case None:
            out.none = True
        case torch.Tensor():
            out.value = value_of(actual)
        case bool():
            out.boolean = actual
        case int() if kind.kind() == "FloatType":
            out.real = float(actual)
        case int():
            out.integer = actual
        case float():
            out.real = actual
        case str():
            out.text = actual
        case torch.dtype():
            out.dtype = dtype(actual)
        case torch.memory_format():
            out.memory_format = _MEMORY_FORMATS[actual]
        case torch.layout() if actual == torch.strided:
            out.layout = "strided"
        case torch.device() if actual.type in ("cuda", "cpu"):
            out.device = actual.type
        case _:
            raise CannotEncodeError(f"argument {name!r} is {type(actual).__name__} {actual!r:.80}")
    return out


def _element(formal: Any) -> Any:
    """Give the type inside Optional."""
    return formal.getElementType() if formal.kind() == "OptionalType" else formal
