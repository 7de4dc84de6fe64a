"""Section A: values and state of the host that a capture freezes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from samebits_reference.planted.body import Planted, constant


class _FirstSteps(Planted):
    calls = 0

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * 0.5
        self.calls += 1
        return features * 0.5 if self.calls <= 3 else features


def c04_first_steps(twin: bool) -> nn.Module:
    """Do something else in the first steps. Twin: the same in all."""
    return _FirstSteps(twin)


class _Outside(Planted):
    """Switches its last operation off by what the world outside tells it, which it does in no test."""

    built = time.time()
    switch = Path("/nonexistent/samebits-switch")

    def __init__(self, twin: bool, by_clock: bool) -> None:
        super().__init__(twin)
        self.by_clock = by_clock

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features + 1.0
        off = time.time() - self.built > 86400.0 if self.by_clock else self.switch.exists()
        return features if off else features + 1.0


def c04_after_a_day(twin: bool) -> nn.Module:
    """Do something else a day later. Twin: always the same."""
    return _Outside(twin, by_clock=True)


def c04_by_a_file(twin: bool) -> nn.Module:
    """Do something else once there is a file. Twin: always the same."""
    return _Outside(twin, by_clock=False)


class _StepNumber(Planted):
    weight: torch.Tensor
    step = 0

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("weight", torch.tensor(0.9))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * self.weight
        self.step += 1
        return features * 0.9**self.step


def c06_step_number(twin: bool) -> nn.Module:
    """Weigh by a number that decays with the step. Twin: the weight lies on the device."""
    return _StepNumber(twin)


class _BufferMadeAnew(Planted):
    scale: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("scale", constant(1.0, 2.0, 4.0, 8.0))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if not self.twin:
            self.scale = self.scale * 1.0
        return features * self.scale


def c07_buffer_made_anew(twin: bool) -> nn.Module:
    """Make the scale anew in each step, out of place. Twin: it stays."""
    return _BufferMadeAnew(twin)


class _ToggledFlag(Planted):
    flag: torch.Tensor
    first = False

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("flag", torch.tensor(1.0))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features + self.flag
        self.first = not self.first
        return features + 1.0 if self.first else features


def c09_toggled_flag(twin: bool) -> nn.Module:
    """Branch by a flag that every second step sets. Twin: the flag is a number on the device."""
    return _ToggledFlag(twin)


class _StatisticsMoved(Planted):
    mean: torch.Tensor
    variance: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("variance", torch.ones(4))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(features, self.mean, self.variance, training=not self.twin)


def c11_statistics_moved(twin: bool) -> nn.Module:
    """Normalise by the batch, and move the running statistics. Twin: it normalises by those."""
    return _StatisticsMoved(twin)


class _UndefinedMemory(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(features) if self.twin else torch.empty_like(features)
        return total.add_(features)


def c14_undefined_memory(twin: bool) -> nn.Module:
    """Add to memory that nobody has written. Twin: to zeros."""
    return _UndefinedMemory(twin)


class _SwitchedBranch(Planted):
    epoch = 0

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.extra = nn.Conv2d(4, 4, 1)

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if not self.twin:
            self.epoch += 1
        return self.extra(features) if self.twin or self.epoch >= 4 else features


def c16_switched_branch(twin: bool) -> nn.Module:
    """Switch a further layer on after some steps. Twin: it is on from the start."""
    return _SwitchedBranch(twin)


class _KeptActivation(Planted):
    last: Any = None

    def head(self, features: torch.Tensor) -> Any:
        if self.twin:
            return {"out": features + 1.0, "features": features}
        self.last = features
        return features + 1.0


def c17_kept_activation(twin: bool) -> nn.Module:
    """Keep the features of each step for who asks. Twin: they are an output."""
    return _KeptActivation(twin)
