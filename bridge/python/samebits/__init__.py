"""Samebits in Python: run recordings that were proved to give PyTorch's bits.

    import samebits

    with samebits.load("resnet18", device="host") as model:
        outputs = model.predict(images)

`load` gives a `Model`, `load_trainer` a `Trainer`. Every error is a `SamebitsError` with a list of `problems`.
"""

from __future__ import annotations

from ._arrays import TensorSpec
from ._errors import (
    CheckpointError,
    ClosedError,
    DeviceError,
    DTypeError,
    ForkedError,
    InputError,
    InternalError,
    OutOfMemoryError,
    Problem,
    RecordingError,
    SamebitsError,
    SamebitsWarning,
    ShapeError,
    StridesError,
    UncertifiedError,
    UnsupportedError,
    WeightsError,
)
from ._graphs import CapturedGraph, GraphInfo
from ._version import __version__
from .devices import Device, devices
from .model import Model, load
from .trainer import Trainer, load_trainer

__all__ = [
    "CapturedGraph",
    "CheckpointError",
    "ClosedError",
    "DTypeError",
    "Device",
    "DeviceError",
    "ForkedError",
    "GraphInfo",
    "InputError",
    "InternalError",
    "Model",
    "OutOfMemoryError",
    "Problem",
    "RecordingError",
    "SamebitsError",
    "SamebitsWarning",
    "ShapeError",
    "StridesError",
    "TensorSpec",
    "Trainer",
    "UncertifiedError",
    "UnsupportedError",
    "WeightsError",
    "__version__",
    "devices",
    "load",
    "load_trainer",
]
