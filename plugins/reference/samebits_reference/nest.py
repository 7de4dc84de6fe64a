"""What a step gave, without its tensors: put back into it, tensors from elsewhere look as if the step had given them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a tensor was, by its number in the order of `flatten`."""

    number: int


class Frame:
    """The nesting of a step's outputs, with everything in it that is no tensor."""

    def __init__(self, output: Any) -> None:
        self._count = 0
        self._frame = self._of(output)

    def fill(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Put tensors into their places, in the order of `flatten`."""
        if len(tensors) != self._count:
            raise ValueError(f"{len(tensors)} tensors for {self._count} places")
        return _filled(self._frame, tensors)

    def _of(self, node: Any) -> Any:
        if isinstance(node, torch.Tensor):
            self._count += 1
            return _Place(self._count - 1)
        if isinstance(node, Mapping):
            inside = {key: self._of(node[key]) for key in sorted(node, key=str)}  # numbered as `flatten` goes
            return _like(node, ((key, inside[key]) for key in node))
        if isinstance(node, list | tuple):
            return _like(node, (self._of(item) for item in node))
        return node


def _filled(node: Any, tensors: Sequence[torch.Tensor]) -> Any:
    if isinstance(node, _Place):
        return tensors[node.number]
    if isinstance(node, Mapping):
        return _like(node, ((key, _filled(item, tensors)) for key, item in node.items()))
    if isinstance(node, list | tuple):
        return _like(node, (_filled(item, tensors) for item in node))
    return node


def _like(node: Any, items: Iterator[Any]) -> Any:
    return type(node)(*items) if hasattr(node, "_fields") else type(node)(items)
