"""What a captured graph holds of a module: addresses that later steps may have left."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn


class Holding:
    """The parameters, buffers and submodules of a module at one moment, and where they lay.

    Their storages are kept alive: as long as a graph is there nobody else can get an address that it reads, so that an equal
    address is the same memory.
    """

    def __init__(self, module: nn.Module, *further: torch.Tensor, versions: bool = False) -> None:
        """Look at a module now. further are tensors beside its own that the graph may read.

        With versions the graph holds something that was computed of tensors, and is right until one is written in place.
        """
        self._places, self._versions = list(_places(module)), versions
        self._storages = [place[2].untyped_storage() for place in self._places if isinstance(place[2], torch.Tensor)]
        self._storages += [tensor.untyped_storage() for tensor in further]

    def moved(self) -> str:
        """Name what is not where it was, is another one, or was written; empty if all is as it was."""
        for names, name, held, address, version, path in self._places:
            now = names.get(name)
            if now is not held or (address and (now.data_ptr() != address or (self._versions and _version(now) != version))):
                return path
        return ""


# Who names it, its name, what it is, its address, its version, its path.
_Place = tuple[Mapping[str, Any], str, Any, int, int, str]


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # those have none


def _places(module: nn.Module) -> Iterator[_Place]:
    for path, part in module.named_modules():
        for names in (part._modules, part._parameters, part._buffers):
            for name, held in names.items():
                tensor = isinstance(held, torch.Tensor)
                address, version = (held.data_ptr(), _version(held)) if tensor else (0, 0)
                yield names, name, held, address, version, f"{path}.{name}".lstrip(".")


def move(module: nn.Module) -> list[torch.Tensor]:
    """Give every parameter and buffer fresh memory with the same bits, and return the old, full of bytes 0xff."""
    old: dict[int, torch.Tensor] = {}
    fresh: dict[int, torch.UntypedStorage] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        block = tensor.untyped_storage()
        if block._cdata not in fresh:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(block)
            old[block._cdata], fresh[block._cdata] = whole, whole.clone().untyped_storage()
        with torch.no_grad():
            place = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            geometry = (tensor.storage_offset(), tensor.size(), tensor.stride())
            tensor.data = place.set_(fresh[block._cdata], *geometry)
    for whole in old.values():
        whole.fill_(0xFF)
    return list(old.values())


def scale(module: nn.Module, factor: float) -> int:
    """Multiply every floating parameter in place, each storage once. Gives how many there are."""
    seen = set()
    for parameter in filter(operator.methodcaller("is_floating_point"), module.parameters()):
        block = parameter.untyped_storage()
        if block._cdata in seen:
            continue
        seen.add(block._cdata)
        if parameter.numel() * parameter.element_size() == block.nbytes():
            parameter.detach().mul_(factor)  # who counts versions sees it
        else:
            torch.empty(0, dtype=parameter.dtype, device=parameter.device).set_(block).mul_(factor)
    return len(seen)
