"""Turns the messages of a recording back into what PyTorch takes: the other way round than encode.py."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

from samebits_wire import recording_pb2 as pb
from samebits_wire.memory import dtype_name
from samebits_wire.problems import Problem, ProblemError

_MEMORY_FORMATS = {
    "contiguous": torch.contiguous_format,
    "preserve": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
_LIBRARIES = frozenset({"torchvision"})  # register operations when they are imported


def recording(data: bytes) -> pb.Recording:
    """Read a recording. Its host has verified it; what is still wrong with it becomes an error of the run."""
    out = pb.Recording()
    try:
        out.ParseFromString(data)
    except Exception as error:  # protobuf has an error type of its own for each of its implementations
        raise ProblemError(Problem("TORN_RECORDING", f"it is no recording, or a torn one: {error}", "recording")) from error
    if out.header.schema != 1:
        what = f"the recording has schema version {out.header.schema}, this plugin reads version 1"
        raise ProblemError(Problem("SCHEMA_VERSION", what, "header.schema"))
    return out


def dtype(number: int, *, double: bool = False) -> torch.dtype:
    """Give the dtype of a number on the wire. double stands for what is computed in double precision throughout."""
    found: torch.dtype = getattr(torch, dtype_name(number))
    return torch.float64 if double and found.is_floating_point else found


@functools.cache
def operation(name: str) -> Any:
    """Find an operation by the name that recordings have. AttributeError: PyTorch has none."""
    namespace, _, rest = name.partition("::")
    if namespace in _LIBRARIES:
        importlib.import_module(namespace)
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def memory_format(name: str) -> torch.memory_format:
    """Give a memory format by the name that recordings have."""
    return _MEMORY_FORMATS[name]
