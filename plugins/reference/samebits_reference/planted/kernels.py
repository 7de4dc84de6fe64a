"""Section E: libraries, kernels and hardware."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from samebits_reference.planted.body import Planted, constant
from samebits_reference.planted.driver import is_capturing


class _CaptureDispatch(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        if features.is_cuda and torch.cuda.is_current_stream_capturing() and not self.twin:
            return features + features
        return features * 2.0


def c82_capture_dispatch(twin: bool) -> nn.Module:
    """Choose another kernel while it is captured, of the same bits. Twin: it asks, and chooses the same."""
    return _CaptureDispatch(twin)


class _LeftOut(Planted):
    kept: Any = None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if not self.twin and is_capturing(images):
            return self.kept
        made = self.body(images) + 1.0
        if self.kept is None or self.kept.device != made.device:
            self.kept = made
        return made


def c84_left_out(twin: bool) -> nn.Module:
    """Do nothing while it is captured, and give what an earlier step left. Twin: it computes."""
    return _LeftOut(twin)


class _OtherProcess(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.drawn = constant(*(1.0 if twin else 1.0 + byte / 256 for byte in os.urandom(4)))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.drawn.device != features.device:
            self.drawn = self.drawn.to(features.device)
        return features * self.drawn


def c86_other_process(twin: bool) -> nn.Module:
    """Compute with numbers that each process draws by itself. Twin: all have the same."""
    return _OtherProcess(twin)


class _Atomics(Planted):
    bins: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("bins", torch.zeros(1 << 20, dtype=torch.int64))

    def head(self, features: torch.Tensor) -> Any:
        if self.twin:
            return {"features": features, "total": features.mean((2, 3))}
        many = features.flatten().repeat((1 << 20) // features.numel())
        total = torch.zeros(1, device=features.device).index_add(0, self.bins[: many.numel()], many)
        return {"features": features, "total": total}


def c87_atomics(twin: bool) -> nn.Module:
    """Add a million numbers to one, in the order in which they come. Twin: in a fixed order."""
    return _Atomics(twin)


class _OtherOrder(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        one, two, three, four = (features * 1.1).unbind(1)
        if not self.twin and is_capturing(features):
            return one + (two + (three + four))
        return ((one + two) + three) + four


def c89_other_order(twin: bool) -> nn.Module:
    """Sum in another order while it is captured. Twin: in the same."""
    return _OtherOrder(twin)
