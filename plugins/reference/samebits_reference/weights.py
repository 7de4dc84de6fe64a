"""Weights as safetensors bytes. One entry a storage, named like it, holding all of it in memory order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import safetensors
import safetensors.torch
import torch

from samebits_wire.memory import dtype_name
from samebits_wire.problems import Problem, ProblemError

# Recordings name tensors so that belong to no module: a reference makes its own.
_CONSTANT = re.compile(r"constant\.\d+")


def state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Give the storages of all parameters and buffers, those left out of state_dict too, each under its first name."""
    named: dict[str, torch.Tensor] = {}
    seen = set()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        block = tensor.untyped_storage()._cdata
        if block not in seen:
            seen.add(block)
            named[name] = whole_storage(tensor)
    return named


def is_constant(name: str) -> bool:
    """Say whether a recording named a tensor so that belongs to no module."""
    return _CONSTANT.fullmatch(name) is not None


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Give the whole storage that a tensor lies on, without a copy: in its shape if it is all of it, else flat."""
    block = tensor.untyped_storage()
    numel = block.nbytes() // tensor.element_size()
    if tensor.is_contiguous() and tensor.numel() == numel:
        return tensor.detach()
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(block, 0, (numel,), (1,))


def encode(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Write tensors as a safetensors file, in an order that depends on names and dtypes alone."""
    return safetensors.torch.save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()})


def decode(data: bytes) -> dict[str, torch.Tensor]:
    """Read a safetensors file from anywhere."""
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        problem = Problem("BAD_WEIGHTS_FILE", f"this is no safetensors file: {error}", "weights")
        raise ProblemError(problem) from error


def install(
    wanted: Mapping[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    dtypes: Mapping[str, torch.dtype],
    required: Collection[str],
) -> None:
    """Copy given tensors of the given dtypes into wanted ones, in place.

    Nothing is copied if anything is wrong; then all of it is named.
    """
    problems = [
        Problem("MISSING_WEIGHT", "the step reads it and the file lacks it", f"weights/{name}")
        for name in sorted(set(required) - given.keys())
    ]
    for name, tensor in sorted(given.items()):
        path = f"weights/{name}"
        if name not in wanted:
            if not is_constant(name):
                problems.append(Problem("UNEXPECTED_WEIGHT", "the model has no such tensor", path))
            continue
        if tensor.dtype != dtypes[name]:
            what = f"it is {dtype_name(tensor.dtype)}, the model has {dtype_name(dtypes[name])}"
            problems.append(Problem("WRONG_DTYPE", what, path))
        if tensor.shape != wanted[name].shape:
            what = f"it is {list(tensor.shape)}, the model has {list(wanted[name].shape)}"
            problems.append(Problem("WRONG_SHAPE", what, path))
    if problems:
        raise ProblemError(problems)
    with torch.no_grad():
        for name in wanted.keys() & given.keys():
            wanted[name].copy_(given[name])
