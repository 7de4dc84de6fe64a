"""Constructs families from LibreYOLO without a network, on the CPU, each as it needs it.

What is constructed has a `model`, the module; a `device`; and `_forward`, which takes images, unless seams.py says what
runs instead.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from samebits_reference import own_paths, season, texts
from samebits_reference.cells import CUSTOM, Cell
from samebits_reference.planted import table
from samebits_reference.planted.body import Family
from samebits_wire.problems import Kind, Problem, ProblemError

_OWN: Mapping[str, Callable[..., Any]] = {
    "faces": own_paths.faces,
    "sam": own_paths.sam,
    "tower": own_paths.tower,
}


def load_class(cell: Cell) -> Any:
    """Import the class of a cell."""
    module, _, classname = cell.path.rpartition(".")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise _unavailable(f"{cell.family} cannot be imported: {error}") from error
    if not hasattr(found, classname):
        raise _unavailable(f"{cell.family} cannot be imported: {module} has no {classname}")
    return getattr(found, classname)


def _unavailable(*whys: str) -> ProblemError:
    return ProblemError([Problem("FAMILY_UNAVAILABLE", why, "family") for why in whys], Kind.WRONG_ORDER)


def _checked(cell: Cell, made: Any) -> Any:
    """Give what a class of group custom made, if it has what a family must have."""
    lacks = []
    if not isinstance(getattr(made, "model", None), torch.nn.Module):
        lacks.append(f"{cell.classname} has no attribute model that is a torch.nn.Module")
    if not callable(getattr(made, "_forward", None)):
        lacks.append(f"{cell.classname} has no method _forward, which takes images")
    if lacks:
        raise _unavailable(*lacks)
    return made


def sizes(model_class: Any, cell: Cell) -> dict[str, int]:
    """Give the sizes of a family, each with the image size it was made for."""
    match cell.construct:
        case "sam":
            return dict(own_paths.SAM_IMAGES)
        case "tower":
            return dict.fromkeys(own_paths.TOWER_SIZES, cell.native)
        case "planted":
            return {cell.size: cell.native}
        case _:
            of_task = getattr(model_class, "TASK_INPUT_SIZES", {}).get(cell.task)
            found = of_task or getattr(model_class, "INPUT_SIZES", {})
            if not found:
                raise _unavailable(f"{cell.classname} has no INPUT_SIZES: sizes, each with the image size it was made for")
            return dict(found)


def construct(model_class: Any, cell: Cell, size: str, batch: int, seed: int) -> Any:
    """Construct a family with seeded weights."""
    seed_generators(seed)
    common = {"size": size, "task": cell.task, "device": "cpu"}
    try:
        match cell.construct:
            case "scratch":
                return model_class._from_scratch(nb_classes=80, seed=seed, **common)
            case "empty-state":
                return model_class(model_path={}, **common)
            case "own-state":
                network = importlib.import_module(f"libreyolo.models.{cell.package}.nn")
                module = getattr(network, f"build_{cell.package}_model")(size)
                season.season(module, cell.package, seed)  # before the text embeddings are cached
                state = module.state_dict()
                return texts.remembering(model_class, state)(model_path=state, **common)
            case "planted":
                return Family(model_class(cell.variant == table.TWIN))
            case kind if kind in _OWN:
                return _OWN[kind](model_class, size, cell.variant, batch)
            case _:
                made = model_class(model_path=None, **common)
                return _checked(cell, made) if cell.group == CUSTOM else made
    except ImportError as error:
        raise _unavailable(f"{cell.family} lacks a package: {error}") from error


def seed_generators(seed: int) -> None:
    """Seed every generator that a family may draw from."""
    torch.manual_seed(seed)  # of all devices
    random.seed(seed)
    np.random.seed(seed % 2**32)
