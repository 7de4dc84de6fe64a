"""The two arms that prove a seam: all of a family's forward, and what comes behind its segment on what a segment gave."""

from __future__ import annotations

from typing import Any

import torch

from samebits_reference.banks import Spec
from samebits_reference.families import Built, flatten
from samebits_reference.predict_session import PredictSession
from samebits_reference.profile import Profile
from samebits_reference.session import first_run
from samebits_wire.problems import Problem, ProblemError


class WholeSession(PredictSession):
    """All of a family's forward."""

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        """Refuse a cell whose step is all of it."""
        if not built.has_rest:
            detail = "take reference-eager: it runs all there is"
            raise ProblemError(Problem("NO_SEAM", f"nothing comes behind the step of {built.cell.family}", "arm", detail))
        super().__init__(arm, chosen, built)

    def step(self, statics: list[torch.Tensor]) -> Any:
        """Run all of it."""
        return self.built.whole(statics[0])


class RestSession(WholeSession):
    """What comes behind a segment: its inputs are the images, and the outputs of the segment by their names."""

    def specs(self) -> list[Spec]:
        """Run the segment once to see what it gives."""
        images = torch.zeros(self.built.input_sizes, device=self.built.device)
        made = flatten(first_run(self.built, lambda: self.built.step(images)))
        return [*super().specs(), *(Spec.of(name, tensor) for name, tensor in made)]

    def step(self, statics: list[torch.Tensor]) -> Any:
        """Run the rest."""
        return self.built.rest(statics[0], statics[1:])
