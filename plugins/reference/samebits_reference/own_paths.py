"""Families that do not predict by one forward on images: how each is constructed offline, and what of it is a step.

LibreYOLO's classes and configurations do the work; nothing here computes what they compute.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from samebits_wire.problems import Problem, ProblemError

# SAM: an image encoder, then prompts on what it gave.

_SAM = ("hidden_size", "num_hidden_layers", "num_attention_heads", "global_attn_indexes")
_SAM_SIZES: dict[str, tuple[int, int, int, list[int]]] = {
    "base": (768, 12, 12, [2, 5, 8, 11]),
    "large": (1024, 24, 16, [5, 11, 17, 23]),
    "huge": (1280, 32, 16, [7, 15, 23, 31]),
    "tiny": (48, 2, 3, [1]),  # ours, for tests
}
SAM_IMAGES = dict.fromkeys(_SAM_SIZES, 1024) | {"tiny": 256}


def sam(model_class: Any, size: str, _variant: str, _batch: int) -> Any:
    """Construct SAM by its configuration, with no snapshot of weights."""
    from transformers import SamConfig, SamModel

    extent = {"image_size": SAM_IMAGES[size]}
    vision = dict(zip(_SAM, _SAM_SIZES[size], strict=True)) | extent
    config = SamConfig(vision_config=vision, prompt_encoder_config=dict(extent))

    class Offline(model_class):  # type: ignore[misc]
        HF_REPOS = {size: ""}
        INPUT_SIZES = SAM_IMAGES

        def _ensure_weights(self) -> str:
            return ""

        def _load_pretrained(self, snapshot_dir: str) -> tuple[nn.Module, None]:
            return SamModel(config), None

    return Offline(size=size, device="cpu")


def sam_prompts(wrapper: Any, images: torch.Tensor, **encoded: torch.Tensor) -> Any:
    """Answer one click in each image: what a user of the embeddings does with them."""
    extent = images.shape[-1]
    points = torch.tensor([[[[0.4 * extent, 0.6 * extent]]]], device=images.device).repeat(images.shape[0], 1, 1, 1)
    labels = torch.ones(points.shape[:3], dtype=torch.int64, device=images.device)
    answer = wrapper.model(**encoded, input_points=points, input_labels=labels, multimask_output=True)
    return {"masks": answer.pred_masks, "scores": answer.iou_scores}


# SenseNova: the vision tower of a language model, on patches of several images packed one behind the other.

_PATCH = 14
_SIDE = 32  # the tower knows positions in a square of so many patches
TOWER_SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4},
    "b": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12},
    "so400m": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16},
}
PACKINGS: dict[str, list[list[int]]] = {"": [[16, 16]], "wide": [[8, 32]], "two": [[8, 16], [8, 16]]}


class Tower:
    """The packed vision tower. Rows and columns of each image say what the patches are: they are the key of a recording.

    Positions and lengths of the images follow from them. They are read on the host, and lie in memory of the step's own,
    made when a packing comes first: a graph of one packing is wrong for every other, also of as many patches.
    """

    def __init__(self, model: nn.Module, grids: list[list[int]]) -> None:
        self.model = model
        self.device = torch.device("cpu")
        self.keys = {"grids": torch.tensor(grids)}
        self._packed: dict[str, tuple[torch.Tensor, torch.Tensor, int]] = {}

    @property
    def patches(self) -> int:
        """Give the number of patches of the packing at hand."""
        return int(self.keys["grids"].prod(1).sum())

    def _forward(self, patches: torch.Tensor) -> torch.Tensor:
        positions, ends, longest = self._packing(patches.shape[0])
        tokens = patches.permute(0, 2, 3, 1).reshape(patches.shape[0], -1)
        return self.model(
            packed_pixel_values=tokens, packed_flattened_position_ids=positions, cu_seqlens=ends, max_seqlen=longest
        )

    def _packing(self, patches: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        from libreyolo.models.sensenova.data_utils import get_flattened_position_ids_extrapolate as positions_of

        grids = self.keys["grids"].tolist()
        key = f"{self.device} {grids}"
        if key not in self._packed:
            check_packing(grids, patches)
            positions = [positions_of(rows * _PATCH, columns * _PATCH, _PATCH, _SIDE) for rows, columns in grids]
            lengths = [rows * columns for rows, columns in grids]
            ends = torch.tensor([0, *np.cumsum(lengths).tolist()], dtype=torch.int32)  # the host reads it: it stays there
            self._packed[key] = (torch.cat(positions).to(self.device), ends, max(lengths))
        return self._packed[key]


def check_packing(grids: Sequence[Sequence[int]], patches: int) -> None:
    """Refuse images that are not those of so many patches."""
    fits = all(len(grid) == 2 and all(1 <= side <= _SIDE for side in grid) for grid in grids)
    if not fits or sum(rows * columns for rows, columns in grids) != patches:
        what = f"{[list(grid) for grid in grids]} are not the rows and columns of {patches} patches"
        detail = f"an image has 1 to {_SIDE} rows and columns"
        raise ProblemError(Problem("BAD_PACKING", what, "inputs/grids", detail))


def tower(model_class: Any, size: str, variant: str, batch: int) -> Tower:
    """Construct the tower as LibreYOLO does: learned positions, patches by a linear layer, the last block left out."""
    from libreyolo.models.sensenova.modeling.siglip_navit import SiglipVisionConfig

    config = SiglipVisionConfig(**TOWER_SIZES[size], image_size=_SIDE * _PATCH, patch_size=_PATCH, rope=False)
    config.num_hidden_layers -= 1
    model = model_class(config)
    embeddings = model.vision_model.embeddings
    embeddings.convert_conv2d_to_linear(config)
    for layer in model.vision_model.encoder.layers:
        layer.self_attn.out_proj.register_forward_pre_hook(_back_from_bfloat16)
    return Tower(model, PACKINGS[variant] * batch)


def _back_from_bfloat16(linear: nn.Module, args: tuple[torch.Tensor]) -> tuple[torch.Tensor] | None:
    """Give a layer what attention made in its own type: attention always gives bfloat16, and only autocast takes that."""
    (given,) = args
    assert isinstance(linear.weight, torch.Tensor)
    return None if torch.is_autocast_enabled(given.device.type) else (given.to(linear.weight.dtype),)


# PP-OCR: a detector on the whole image, then a recogniser on what it found.

_ALPHABET = 18385
_REGIONS = 16  # as many as are kept: what comes out must have one shape
_READ_BATCHES = 1  # noise has hundreds of regions: the recogniser reads the first


def ocr_pipeline(wrapper: Any, images: torch.Tensor, found: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Run LibreYOLO's pipeline on the first image. found is what the detector gave; None: it runs here."""
    from libreyolo.models.ppocr.inference import OCRInferenceRunner
    from PIL import Image

    probabilities = wrapper.model.det(images) if found is None else found
    stage = types.SimpleNamespace(
        charset=wrapper.charset or alphabet(),
        pipeline_config=wrapper.pipeline_config,
        device=images.device,
        model=types.SimpleNamespace(rec=_first_batches(wrapper.model.rec)),
        names={0: "text"},
        forward_det=lambda _: probabilities,
    )
    picture = Image.fromarray(_bytes(images[0]))
    read = (
        OCRInferenceRunner(stage).run_pipeline(picture, conf=0.0, imgsz=images.shape[-1], rec_batch=6, image_path=None).ocr
    )
    quads, scores, texts = (
        torch.zeros(_REGIONS, 4, 2),
        torch.zeros(_REGIONS, 2),
        torch.zeros(_REGIONS, 32, dtype=torch.int64),
    )
    for place in range(min(len(read.texts), _REGIONS)):
        quads[place] = read.data[place]
        scores[place] = torch.stack([read.det_conf[place], read.conf[place]])
        letters = [ord(letter) for letter in read.texts[place]][:32]
        texts[place, : len(letters)] = torch.tensor(letters, dtype=torch.int64)
    return {"quads": quads, "scores": scores, "texts": texts}


def alphabet() -> list[str]:
    """Give letters for a recogniser whose weights came with none."""
    return ["", *map(chr, range(0x4E00, 0x4E00 + _ALPHABET - 2)), " "]


def _first_batches(recogniser: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    batches = itertools.count()

    def read(crops: torch.Tensor) -> torch.Tensor:
        if next(batches) < _READ_BATCHES:
            return recogniser(crops)
        return torch.zeros(crops.shape[0], 1, _ALPHABET)

    return read


# L2CS: a face detector on the host, then a network on what it cut out.


def faces(model_class: Any, size: str, _variant: str, _batch: int) -> Any:
    """Construct a gaze estimator, with a detector of our own in the place of one that would have to be downloaded."""
    wrapper = model_class(model_path=None, size=size, device="cpu", face_detector=_bright_quarters)
    wrapper._forward = lambda images: [_gaze(wrapper, image) for image in images]
    return wrapper


def _gaze(wrapper: Any, image: torch.Tensor) -> dict[str, torch.Tensor]:
    result = wrapper(image)
    return {"boxes": result.boxes.xyxy, "gaze": result.gaze.data}


def _bright_quarters(image: npt.NDArray[np.uint8]) -> list[tuple[float, float, float, float]]:
    """Take each quarter of an image that is brighter than the whole for a face."""
    height, width = image.shape[0] // 2, image.shape[1] // 2
    corners = [(top, left) for top in (0, height) for left in (0, width)]
    bright = [(t, x) for t, x in corners if image[t : t + height, x : x + width].mean() > image.mean()]
    return [(float(x), float(t), float(x + width), float(t + height)) for t, x in bright]


def _bytes(image: torch.Tensor) -> npt.NDArray[np.uint8]:
    return (image.float().clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).cpu().numpy()
