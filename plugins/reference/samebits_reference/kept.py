"""What a family keeps of weights by their versions, computed anew in the step that is recorded.

Otherwise it is a constant of the recording, and a replay does not see that the weights were changed in place.
"""

from __future__ import annotations

import torch

from samebits_reference import recorder
from samebits_reference.families import Built
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


def _anew(built: Built, images: torch.Tensor, named: Named) -> Taken:
    """Record a step for which every weight looks changed."""
    weights = (*built.module.parameters(), *built.module.buffers())
    torch.autograd.graph.increment_version([weight for weight in weights if not weight.is_inference()])
    return recorder.record(built, images, named)
