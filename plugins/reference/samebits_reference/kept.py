"""What a family keeps of weights by their versions, and computes anew when these change.

In the step that is recorded it is computed anew: otherwise it would be a constant of the recording, and a replay would not
see that the weights were changed in place. PyTorch's graph, which has it as a constant, is captured again when they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from samebits_reference import recorder
from samebits_reference.families import Built
from samebits_reference.observe import Observer
from samebits_reference.recorder import Named, Taken


class Kept:
    """Finds out once whether a family keeps something, and then records steps in which it is made."""

    def __init__(self) -> None:
        self._something: bool | None = None

    def made(self, built: Built, images: torch.Tensor, named: Named, plain: Taken) -> Taken:
        """Give a recording in which whatever is kept is made. plain is of the step before this call, as it is by itself."""
        if self._something is False:
            return plain
        anew = _anew(built, images, named)
        if self._something is None:
            # It is the versions only if steps are as before without new ones, and as this one with new ones.
            self._something = (
                anew.data != plain.data
                and _anew(built, images, named).data == anew.data
                and recorder.record(built, images, named).data == plain.data
            )
        return anew if self._something else plain


def keeps(module: nn.Module, step: Callable[[], Any]) -> bool:
    """Say whether a step has more to do if every weight looks changed."""
    as_it_is, anew = Observer(), Observer()
    step()  # weights may have been loaded since the last one
    with as_it_is:
        step()
    _change_versions(module)
    with anew:
        step()
    return anew.count != as_it_is.count


def _anew(built: Built, images: torch.Tensor, named: Named) -> Taken:
    """Record a step for which every weight looks changed."""
    _change_versions(built.module)
    return recorder.record(built, images, named)


def _change_versions(module: nn.Module) -> None:
    weights = (*module.parameters(), *module.buffers())
    torch.autograd.graph.increment_version([weight for weight in weights if not weight.is_inference()])
