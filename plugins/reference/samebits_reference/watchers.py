"""What is looked at while a step runs: which weights it reads, and the digest of everything it makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference import weights
from samebits_reference.observe import Observer
from samebits_wire.digest import digest_tensor


def tensors(of: Any) -> Iterator[torch.Tensor]:
    """Give the tensors in arguments or results, flat and in order."""
    if isinstance(of, torch.Tensor):
        yield of
    elif isinstance(of, list | tuple):
        for item in of:
            yield from tensors(item)


class Reader(Observer):
    """Finds out which parameters and buffers a step reads, and counts its operations."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.read: set[str] = set()
        self._names = {
            tensor.untyped_storage()._cdata: name for name, tensor in weights.state(module).items() if tensor.numel()
        }

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note the weights among the arguments."""
        for tensor in tensors((args, tuple(kwargs.values()))):
            name = self._names.get(tensor.untyped_storage()._cdata)
            if name is not None:
                self.read.add(name)


class Tracer(Observer):
    """Digests every result right after its operation, before anything can write over it."""

    def __init__(self, want: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.digests: list[list[str]] = []  # a list an operation; empty text where results hold no defined bits
        self.wanted: torch.Tensor | None = None  # the result number want[1] of operation want[0]
        self._want = want
        self._undefined: frozenset[int] = frozenset()

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look up which results the operation will leave undefined."""
        self._undefined = undefined_results(func, args)

    def after(self, index: int, func: torch._ops.OpOverload, result: Any) -> None:
        """Digest the results."""
        with _disable_current_modes():
            made = list(tensors(result))
            self.digests.append(
                ["" if number in self._undefined else digest_tensor(tensor) for number, tensor in enumerate(made)]
            )
            if self._want is not None and self._want[0] == index and self._want[1] < len(made):
                self.wanted = made[self._want[1]].detach().cpu().contiguous().clone()


UNINITIALISED = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


def undefined_results(func: torch._ops.OpOverload, args: tuple[Any, ...]) -> frozenset[int]:
    """Give the results that hold whatever lay in memory before: nobody may compare them."""
    name = func._schema.name.removeprefix("aten::")
    if name in UNINITIALISED:
        return frozenset({0})
    if name == "native_batch_norm" and not args[5]:
        return frozenset({1, 2})  # the saved statistics of a call that does not train
    if name == "cudnn_batch_norm" and args[5]:
        return frozenset({3})  # cuDNN's own notes for backward
    return frozenset()
