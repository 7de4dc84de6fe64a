"""Where a captured segment ends and the rest of a family's forward begins.

The step of such a cell is the segment: it is recorded, captured and compared. The rest runs eagerly, as LibreYOLO itself
runs it behind its own graphs. The suite proves the seam: the rest, on what an arm's segment gave, must give the bits of the
whole forward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from samebits_reference import own_paths

Made = Sequence[torch.Tensor]  # what the segment gave, in the order of flatten


@dataclasses.dataclass(frozen=True)
class Seam:
    """The parts of a family's forward, as functions of what was constructed and the images."""

    segment: Callable[[Any, torch.Tensor], Any]
    rest: Callable[[Any, torch.Tensor, Made], Any]
    whole: Callable[[Any, torch.Tensor], Any] = lambda family, images: family._forward(images)


SEAMS: Mapping[str, Seam] = {
    "depth_anything3": Seam(
        segment=lambda family, images: family.model.forward_network(images),
        rest=lambda family, _images, made: family.model.finish_depth(made[0], made[1] if len(made) > 1 else None),
    ),
    "birefnet": Seam(
        segment=lambda family, images: family.model.forward_enc(images),
        rest=lambda family, images, made: family.model.forward_dec(images, made),
    ),
    "ppocr": Seam(
        segment=lambda family, images: family.model.det(images),
        rest=lambda family, images, made: own_paths.ocr_pipeline(family, images, made[0]),
        whole=lambda family, images: own_paths.ocr_pipeline(family, images, None),
    ),
    "sam": Seam(
        segment=lambda family, images: family.model.get_image_embeddings(images),
        rest=lambda family, images, made: own_paths.sam_prompts(family, images, image_embeddings=made[0]),
        whole=lambda family, images: own_paths.sam_prompts(family, images, pixel_values=images),
    ),
}
