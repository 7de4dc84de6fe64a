"""What Python holds of a family: everything that a step may leave behind, or read the next time.

A replay repeats what the device did, and runs no Python. So whatever a step changes here is changed by eager steps alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

_PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format)
_CONTAINERS = (list, tuple, set, frozenset)
# Objects of these packages are not looked into: they hold no state of a family's own.
_OPAQUE = frozenset({"builtins", "torch", "numpy", "threading", "logging", "pathlib", "re", "PIL", "typing"})
_REGISTERED = ("_parameters", "_buffers", "_modules")
_MANY = 1000  # things in a container: vocabularies and the like, of which the number alone is looked at
_DEEPEST = 40


class Picture:
    """All tensors and plain values that are reachable from objects, each with its path, at one moment."""

    def __init__(self, **roots: Any) -> None:
        """Look now. Tensors are kept, so that no other can get the identity of one."""
        self.tensors: dict[str, torch.Tensor] = {}
        self.registered: set[str] = set()  # paths of parameters and buffers
        self._seen: dict[int, Any] = {}
        self._values: dict[str, Any] = {}
        for name, root in roots.items():
            self._values.update(self._look(root, name, 0))

    def since(self, before: Picture) -> list[str]:
        """Name what is other than before, what is new, and what is gone."""
        paths = dict.fromkeys((*before._values, *self._values))
        absent = object()
        return [path for path in paths if before._values.get(path, absent) != self._values.get(path, absent)]

    def _look(self, at: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
        if isinstance(at, _PLAIN):
            yield path, (type(at).__name__, repr(at))
            return
        if isinstance(at, torch.Tensor):
            self.tensors[path] = at
            yield path, _tensor(at)
            return
        if isinstance(at, np.ndarray | np.generic):
            content = b"" if at.dtype.hasobject else hashlib.blake2b(at.tobytes()).digest()
            yield path, (at.shape, str(at.dtype), content)
            return
        if isinstance(at, torch.Generator):
            yield path, bytes(at.get_state().tolist()) if at.device.type == "cpu" else ""
            return
        if id(at) in self._seen or depth > _DEEPEST:
            return
        self._seen[id(at)] = at
        if isinstance(at, Mapping):
            yield f"{path}.keys", len(at)
            if len(at) <= _MANY:
                for key, item in list(at.items()):
                    yield from self._look(item, f"{path}[{key!r}]", depth + 1)
        elif isinstance(at, _CONTAINERS):
            yield f"{path}.length", len(at)
            if len(at) <= _MANY and not isinstance(at, set | frozenset):
                for index, item in enumerate(at):
                    yield from self._look(item, f"{path}[{index}]", depth + 1)
        elif isinstance(at, torch.nn.Module) or type(at).__module__.partition(".")[0] not in _OPAQUE:
            for name, item in list(getattr(at, "__dict__", {}).items()):
                if name in _REGISTERED:  # of a module: named as people do
                    for own, part in list(item.items()):
                        if isinstance(part, torch.Tensor):
                            self.registered.add(f"{path}.{own}")
                        yield from self._look(part, f"{path}.{own}", depth + 1)
                else:
                    yield from self._look(item, f"{path}.{name}", depth + 1)


def _tensor(tensor: torch.Tensor) -> Any:
    """Say which memory a tensor is, and how it lies there."""
    if tensor.layout != torch.strided:
        return id(tensor)
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
