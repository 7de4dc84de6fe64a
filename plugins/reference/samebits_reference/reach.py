"""Which tensors an input reaches, and what the host reads of the others.

A graph replays what the device did. A number that the host read while it was captured stays as it was. That is right where
no input can change the number: then it is a constant of the step, like a size. So data is followed through the step, from
storage to storage: every result, and everything written, comes from all arguments of its operation.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

# Names of the parameters and buffers that data comes from. None: from an input, too, or from what steps change.
Origin = frozenset[str] | None

NOWHERE: Origin = frozenset()


class Reach:
    """Knows where the data of each storage comes from."""

    def __init__(self, unseen: Callable[[torch.Tensor], Origin]) -> None:
        """Begin a step. unseen gives the origin of a storage that no operation of the step has touched yet."""
        self._unseen = unseen
        self._origins: dict[int, Origin] = {}

    def of(self, tensor: torch.Tensor) -> Origin:
        """Give the origin of a tensor's data."""
        block = tensor.untyped_storage()._cdata
        return self._origins[block] if block in self._origins else self._unseen(tensor)

    def together(self, tensors: Iterable[torch.Tensor]) -> Origin:
        """Give the origin of what is made of several tensors."""
        return functools.reduce(_both, map(self.of, tensors), NOWHERE)

    def flow(self, origin: Origin, into: torch.Tensor) -> None:
        """Note that data went into a tensor. What lay in the same storage may still be there."""
        block = into.untyped_storage()._cdata
        self._origins[block] = _both(origin, self._origins.get(block, NOWHERE))


def _both(one: Origin, other: Origin) -> Origin:
    return None if one is None or other is None else one | other


@functools.cache
def gives_numbers(func: torch._ops.OpOverload) -> bool:
    """Say whether a call gives numbers alone: it hands them to the host, and the device does nothing."""
    returns = [str(formal.type) for formal in func._schema.returns]
    return bool(returns) and not any("Tensor" in kind for kind in returns)


# Methods that read data without an operation. Those that are not here come down to one, or to these.
_READERS = ("numpy", "tolist", "__dlpack__", "__reduce_ex__")


@contextlib.contextmanager
def watch_reads(look: Callable[[str, torch.Tensor], None]) -> Iterator[None]:
    """Call look before any tensor's data is read on the host by a method."""

    def watched(name: str) -> Callable[..., Any]:
        plain = getattr(torch.Tensor, name)

        @functools.wraps(plain)
        def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            look(f"Tensor.{name}", self)
            return plain(self, *args, **kwargs)

        return read

    own = {name: vars(torch.Tensor)[name] for name in _READERS if name in vars(torch.Tensor)}
    for name in _READERS:  # inherited methods are hidden for a while
        setattr(torch.Tensor, name, watched(name))
    try:
        yield
    finally:
        for name in _READERS:
            if name in own:
                setattr(torch.Tensor, name, own[name])
            else:
                delattr(torch.Tensor, name)
