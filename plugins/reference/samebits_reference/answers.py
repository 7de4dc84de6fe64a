"""Turns LibreYOLO's results into JSON, and maps and pictures into files."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from samebits_wire.problems import Problem, ProblemError

Masks = Literal["polygon", "rle", "none"]
_FULL = 65535  # of a 16-bit picture


@dataclasses.dataclass(frozen=True)
class Form:
    """How results are given."""

    masks: Masks = "polygon"
    folder: pathlib.Path | None = None  # for files; none: there are none
    annotate: bool = False


def answer(result: Any, form: Form, source: pathlib.Path, name: str) -> dict[str, Any]:
    """Give what a result says of one picture. name begins the names of its files."""
    given: dict[str, Any] = {}
    for slot, say in _SLOTS.items():
        if getattr(result, slot, None) is not None:
            given |= say(result, form, name)
    if form.annotate:
        given["annotated"] = _file(form, f"{name}.annotated.jpg", lambda: _drawn(result, source), quality=95)
    return given


# Things that lie on a picture.


def _detections(result: Any, form: Form, _name: str) -> dict[str, Any]:
    found = [
        {**_named(result, label, score), "box": _numbers(box)}
        for label, score, box in zip(result.boxes.cls, result.boxes.conf, result.boxes.xyxy, strict=True)
    ]
    if result.masks is not None and form.masks == "polygon":
        for one, outline in zip(found, result.masks.xy, strict=True):
            one["polygon"] = _numbers(outline)
    if result.masks is not None and form.masks == "rle":
        for one, mask in zip(found, _array(result.masks.data), strict=True):
            one["mask"] = run_lengths(mask)
    for slot, key, attribute in (("keypoints", "keypoints", "data"), ("obb", "rotated", "xywhr"), ("gaze", "gaze", "data")):
        if getattr(result, slot) is not None:
            for one, row in zip(found, getattr(getattr(result, slot), attribute), strict=True):
                one[key] = _numbers(row)
    return {"detections": found}


def _points(result: Any, _form: Form, _name: str) -> dict[str, Any]:
    points = result.points
    rows = zip(points.cls, points.conf, points.xy, strict=True)
    return {"points": [{**_named(result, label, score), "point": _numbers(xy)} for label, score, xy in rows]}


def _text(result: Any, _form: Form, _name: str) -> dict[str, Any]:
    read = result.ocr
    rows = zip(read.texts, read.conf, read.det_conf, read.polygons, strict=True)
    return {
        "texts": [
            {"text": text, "score": _number(score), "found": _number(found), "polygon": _numbers(polygon)}
            for text, score, found, polygon in rows
        ]
    }


# Things that are of the whole picture.


def _classes(result: Any, _form: Form, _name: str) -> dict[str, Any]:
    best = result.probs.top5
    return {"top5": [_named(result, label, result.probs.data[label]) for label in best]}


def _embedding(result: Any, _form: Form, _name: str) -> dict[str, Any]:
    return {"embeddings": _numbers(result.embeddings.data)}


def _semantic(result: Any, form: Form, name: str) -> dict[str, Any]:
    labels = _array(result.semantic_mask.data)
    counts = zip(*np.unique(labels, return_counts=True), strict=True)
    classes = [{"class": int(label), "name": _name_of(result, label), "pixels": int(count)} for label, count in counts]
    small = labels.max(initial=0) < 256
    return {
        "semantic": {"classes": classes}
        | _map(form, f"{name}.semantic.png", lambda: Image.fromarray(labels.astype(np.uint8 if small else np.uint16)))
    }


def _depth(result: Any, form: Form, name: str) -> dict[str, Any]:
    depth = result.depth_map
    low, high = depth.min, depth.max

    def picture() -> Image.Image:
        values = np.nan_to_num(_array(depth.data).astype(np.float64), nan=low, posinf=high, neginf=low)
        return Image.fromarray(np.rint((values - low) * (_FULL / max(high - low, 1e-12))).astype(np.uint16))

    about = {"min": _number(low), "max": _number(high), "encoding": depth.encoding}
    return {"depth": about | _map(form, f"{name}.depth.png", picture)}


def _restored(result: Any, form: Form, name: str) -> dict[str, Any]:
    pixels = result.restored.array
    about = {"width": pixels.shape[1], "height": pixels.shape[0], "scale": result.restore_scale}
    return {"restored": about | _map(form, f"{name}.restored.png", lambda: Image.fromarray(pixels))}


def _matte(result: Any, form: Form, name: str) -> dict[str, Any]:
    alpha = result.matte.array
    about = {"coverage": _number((alpha >= 0.5).mean())}
    return {"matte": about | _map(form, f"{name}.matte.png", lambda: Image.fromarray(np.rint(alpha * 255).astype(np.uint8)))}


_SLOTS: dict[str, Callable[[Any, Form, str], dict[str, Any]]] = {
    "boxes": _detections,
    "points": _points,
    "ocr": _text,
    "probs": _classes,
    "embeddings": _embedding,
    "semantic_mask": _semantic,
    "depth_map": _depth,
    "restored": _restored,
    "matte": _matte,
}


def run_lengths(mask: npt.NDArray[Any]) -> dict[str, Any]:
    """Give a mask as COCO does, uncompressed: lengths of runs down its columns, of 0 and 1 in turn, 0 first."""
    flat = np.concatenate([[False], np.asarray(mask).astype(bool).T.reshape(-1)])
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    return {"size": list(mask.shape), "counts": np.diff([0, *ends, flat.size - 1]).tolist()}


# Files.


def _map(form: Form, name: str, picture: Callable[[], Image.Image]) -> dict[str, str]:
    return {} if form.folder is None else {"file": _file(form, name, picture)}


def _file(form: Form, name: str, picture: Callable[[], Image.Image], **how: Any) -> str:
    """Write a picture, all of it or nothing."""
    assert form.folder is not None
    path = form.folder / name
    part = path.with_name(f".{name}.part")
    try:
        picture().save(part, format="PNG" if path.suffix == ".png" else "JPEG", **how)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ProblemError(Problem("CANNOT_WRITE", f"{path}: {error.strerror or error}", "output")) from error
    return str(path)


def _drawn(result: Any, source: pathlib.Path) -> Image.Image:
    from libreyolo.utils.drawing import draw_results
    from libreyolo.utils.image_loader import ImageLoader

    return draw_results(result, ImageLoader.load(source)).convert("RGB")


# Numbers.


def _named(result: Any, label: Any, score: Any) -> dict[str, Any]:
    return {"class": int(label), "name": _name_of(result, label), "score": _number(score)}


def _name_of(result: Any, label: Any) -> str:
    return str(result.names.get(int(label), int(label)))


def _array(data: Any) -> npt.NDArray[Any]:
    return data.detach().cpu().numpy() if isinstance(data, torch.Tensor) else np.asarray(data)


def _number(value: Any) -> float | None:
    """Give the shortest decimal that is this float32 and no other; null where it is no number."""
    number = float(value)
    return float(str(np.float32(number))) if math.isfinite(number) else None


def _numbers(values: Any) -> list[Any]:
    rows: Iterable[Any] = _array(values)
    return [_numbers(row) if np.ndim(row) else _number(row) for row in rows]
