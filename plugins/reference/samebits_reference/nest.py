"""What a step gave, without its tensors: put back into it, tensors from elsewhere look as if the step had given them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a tensor was, by its number in the order of `flatten`."""

    number: int


@dataclasses.dataclass(frozen=True)
class _Nest:
    """A list, a tuple or a mapping, with what is in it by its keys."""

    like: type
    inside: list[tuple[Any, Any]]


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
            return _Nest(type(node), [(key, inside[key]) for key in node])
        if isinstance(node, list | tuple):
            return _Nest(type(node), [(None, self._of(item)) for item in node])
        return node


def _filled(node: Any, tensors: Sequence[torch.Tensor]) -> Any:
    if isinstance(node, _Place):
        return tensors[node.number]
    if not isinstance(node, _Nest):
        return node
    items = [(key, _filled(item, tensors)) for key, item in node.inside]
    if issubclass(node.like, Mapping):
        return node.like(items)  # type: ignore[call-arg]
    if hasattr(node.like, "_fields"):
        return node.like(*(item for _, item in items))
    return node.like(item for _, item in items)  # type: ignore[call-arg]
