"""What Python holds of a family: everything that a step may leave behind, or read the next time.

A replay repeats what the device did, and runs no Python. So whatever a step changes here is changed by eager steps alone.
"""

from __future__ import annotations

import array
import contextvars
import ctypes
import functools
import hashlib
import random
import types
import warnings
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_BYTES = (bytearray, memoryview, array.array, ctypes._SimpleCData, ctypes.Array, ctypes.Structure)
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_METHODS = (types.MethodType, functools.partial, staticmethod, classmethod, property)
# Objects of these packages are not looked into: they hold no state of a family's own.
OPAQUE = frozenset({"builtins", "torch", "numpy", "threading", "logging", "pathlib", "re", "PIL", "typing", "triton"})
_REGISTERED = ("_parameters", "_buffers", "_modules")
_MANY = 1000  # things in a container: vocabularies and the like, of which it is only looked at whether they are the same
_DEEPEST = 40


class Picture:
    """All tensors and plain values that are reachable from objects, each with its path, at one moment."""

    def __init__(self, **roots: Any) -> None:
        """Look now. Tensors are kept, so that no other can get the identity of one."""
        self.tensors: dict[str, torch.Tensor] = {}
        self.registered: set[str] = set()  # paths of parameters and buffers
        self._seen: dict[int, Any] = {}
        self._values = {name: dict(self._look(root, name, 0)) for name, root in roots.items()}

    @property
    def roots(self) -> Container[str]:
        """Give the names of what was looked at."""
        return self._values.keys()

    def since(self, before: Picture) -> list[str]:
        """Name what is other than before, what is new, and what is gone. Roots that one of the two lacks do not count."""
        changed = []
        absent = object()
        for root in (name for name in self._values if name in before._values):
            was, now = before._values[root], self._values[root]
            changed += [path for path in {**was, **now} if was.get(path, absent) != now.get(path, absent)]
        return changed

    def _look(self, at: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
        if isinstance(at, PLAIN):
            yield path, (type(at).__name__, repr(at))
            return
        if isinstance(at, torch.Tensor):
            self.tensors[path] = at
            yield path, _tensor(at)
            if not vars(at) or id(at) in self._seen:
                return
            self._seen[id(at)] = at
            for name, part in list(vars(at).items()):  # what a family hangs on a tensor
                yield from self._look(part, f"{path}.{name}", depth + 1)
            return
        held = _content(at)
        if held is not None:
            yield path, held
            return
        if id(at) in self._seen or depth > _DEEPEST:
            return
        self._seen[id(at)] = at
        for name, part in self._parts(at, path):
            yield from self._look(part, name, depth + 1)

    def _parts(self, at: Any, path: str) -> Iterator[tuple[str, Any]]:
        """Give what an object holds, each with its path."""
        if isinstance(at, Mapping):
            yield f"{path}.keys", len(at)
            if len(at) <= _MANY:
                yield from ((f"{path}[{key!r}]", item) for key, item in list(at.items()))
            else:
                yield f"{path}.values", self._same(at.values())
        elif isinstance(at, _SEQUENCES):
            yield f"{path}.length", len(at)
            if len(at) <= _MANY:
                yield from ((f"{path}[{index}]", item) for index, item in enumerate(at))
            else:
                yield f"{path}.values", self._same(at)
        elif isinstance(at, np.ndarray):  # of objects
            yield f"{path}.list", at.tolist()
        elif isinstance(at, contextvars.ContextVar):
            yield f"{path}.value", at.get(None)
        elif isinstance(at, _SETS):
            yield f"{path}.length", len(at)
            yield f"{path}.values", self._same(sorted(at, key=_order) if len(at) <= _MANY else at)
        elif isinstance(at, _METHODS):
            for name in ("__self__", "__func__", "func", "args", "keywords", "fget"):
                yield f"{path}.{name}", getattr(at, name, None)
        elif isinstance(at, types.FunctionType):
            yield from ((f"{path}.{name}", held) for name, held in _enclosed(at))
            yield from ((f"{path}.{name}", held) for name, held in at.__dict__.items())
            yield from ((f"{path}.default[{index}]", held) for index, held in enumerate(at.__defaults__ or ()))
        elif isinstance(at, types.GeneratorType):
            frame = at.gi_frame
            yield f"{path}.at", frame.f_lasti if frame is not None else -1
            yield from (
                (f"{path}.{name}", held) for name, held in (dict(frame.f_locals) if frame is not None else {}).items()
            )
        elif isinstance(at, type):
            yield from self._of_class(at, path)
        elif isinstance(at, torch.nn.Module) or package(type(at).__module__) not in OPAQUE:
            yield from self._of_object(at, path)

    def _of_object(self, at: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, item in list(getattr(at, "__dict__", {}).items()):
            if name in _REGISTERED:  # of a module: named as people do
                for own, part in list(item.items()):
                    if isinstance(part, torch.Tensor):
                        self.registered.add(f"{path}.{own}")
                    yield f"{path}.{own}", part
            else:
                yield f"{path}.{name}", item
        for kind in type(at).__mro__:
            for slot in _slots(kind):
                try:
                    yield f"{path}.{slot}", getattr(at, slot)
                except AttributeError:
                    continue
            if package(kind.__module__) not in OPAQUE:
                yield kind.__qualname__, kind

    def _of_class(self, at: type, path: str) -> Iterator[tuple[str, Any]]:
        """Give what a class holds for all of its objects, and what its functions do."""
        if package(at.__module__) in OPAQUE:
            return
        for name, item in list(vars(at).items()):
            if not (name.startswith("__") and name.endswith("__")) and not isinstance(item, types.MemberDescriptorType):
                yield f"{path}.{name}", item

    def _same(self, items: Iterable[Any]) -> str:
        """Say which things there are. They are kept, so that no other can get the identity of one."""
        kept = list(items)
        self._seen[id(kept)] = kept
        known = [repr(item) if isinstance(item, PLAIN) and len(kept) <= _MANY else id(item) for item in kept]
        return hashlib.blake2b(repr(known).encode()).hexdigest()


def package(module: Any) -> str:
    """Give the package that a module's name begins with."""
    return str(module).partition(".")[0]


def _content(at: Any) -> Any:
    """Say what is in an object that shows it in a way of its own; None: it has none."""
    if isinstance(at, np.ndarray | np.generic) and not at.dtype.hasobject:
        return at.shape, str(at.dtype), hashlib.blake2b(at.tobytes()).digest()
    if isinstance(at, torch.Generator):
        return bytes(at.get_state().tolist()) if at.device.type == "cpu" else ""
    if isinstance(at, random.Random):
        return repr(at.getstate())
    if isinstance(at, _GENERATORS):
        source: Any = at.bit_generator if isinstance(at, np.random.Generator) else at
        return repr(source.get_state() if isinstance(at, np.random.RandomState) else source.state)
    if isinstance(at, _BYTES):
        return hashlib.blake2b(bytes(at)).digest()
    if type(at).__module__ == "itertools" or type(at).__name__.endswith("iterator"):
        with warnings.catch_warnings():  # how far they are is told to copies alone
            warnings.simplefilter("ignore")
            try:
                return repr(at.__reduce__())
            except (TypeError, RecursionError):
                return None
    return None


def _enclosed(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Give the variables of an outer function that an inner one uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is empty
            continue


def _slots(kind: type) -> Iterator[str]:
    slots = vars(kind).get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        if slot not in ("__dict__", "__weakref__"):
            yield f"_{kind.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot


def _order(item: Any) -> tuple[str, str]:
    return type(item).__qualname__, repr(item) if isinstance(item, PLAIN) else str(id(item))


def _tensor(tensor: torch.Tensor) -> Any:
    """Say which memory a tensor is, and how it lies there."""
    if tensor.layout != torch.strided:
        return id(tensor)
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
