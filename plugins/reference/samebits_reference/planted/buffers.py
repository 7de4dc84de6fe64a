"""Section C: buffers, what they share, and how long they live."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from samebits_reference.planted.body import Planted, constant
from samebits_reference.planted.driver import Driver


class _SameMemory(Planted):
    out: Any = None

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features + 1.0
        if self.out is None or self.out.shape != features.shape:
            self.out = torch.empty_like(features)
        return torch.add(features, 1.0, out=self.out)


def c26_same_memory(twin: bool) -> nn.Module:
    """Give every result in the same memory. Twin: each has its own."""
    return _SameMemory(twin)


class _LateChange(Planted):
    calls = 0

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features + 1.0
        self.calls += 1
        return features + 1.0 if self.calls < 1000 else features


def c27_late_change(twin: bool) -> nn.Module:
    """Change after more steps than any test runs. Twin: never."""
    return _LateChange(twin)


_LATE = 10000  # steps, more than any test runs
_steps = 0


def _next_global() -> int:
    global _steps
    _steps += 1
    return _steps


def _next_enclosed() -> Callable[[], int]:
    steps = 0

    def after() -> int:
        nonlocal steps
        steps += 1
        return steps

    return after


class _OfClass:
    steps = 0

    def __call__(self) -> int:
        _OfClass.steps += 1
        return _OfClass.steps


class _LateCount(Planted):
    """Changes late, by a number that it holds in one way or another."""

    def __init__(self, twin: bool, count: Callable[[], int]) -> None:
        super().__init__(twin)
        self.count = count

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features + 1.0 if self.twin or self.count() < _LATE else features


def c27_late_global(twin: bool) -> nn.Module:
    """Count steps in a global variable, and change late. Twin: never."""
    return _LateCount(twin, _next_global)


def c27_late_enclosed(twin: bool) -> nn.Module:
    """Count steps in a variable of an outer function, and change late. Twin: never."""
    return _LateCount(twin, _next_enclosed())


def c27_late_class(twin: bool) -> nn.Module:
    """Count the steps of all objects of a class, and change late. Twin: never."""
    return _LateCount(twin, _OfClass())


class _LateIterator(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.steps = itertools.count()

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features + 1.0 if self.twin or next(self.steps) < _LATE else features


def c27_late_iterator(twin: bool) -> nn.Module:
    """Count steps by an iterator, and change late. Twin: never."""
    return _LateIterator(twin)


class _Scaled(Planted):
    """Scales its features by numbers, one for each channel."""

    scale: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("scale", constant(0.5, 1.0, 1.5, 2.0))


class _StagingBlock(_Scaled):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * self.scale
        staged = constant(0.5, 1.0, 1.5, 2.0)
        if features.is_cuda:
            staged = staged.pin_memory()
        return features * staged.to(features.device, non_blocking=True)


def c32_staging_block(twin: bool) -> nn.Module:
    """Upload numbers from a block of pinned memory that is free again after the step. Twin: they lie on the device."""
    return _StagingBlock(twin)


class _RefilledBlock(_Scaled):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.block = torch.empty(4)  # no buffer: it stays on the host

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * self.scale
        self.block.fill_(0.5)
        return features * self.block.to(features.device).view(1, 4, 1, 1)


def c34_refilled_block(twin: bool) -> nn.Module:
    """Fill a block on the host in each step, and upload it. Twin: the numbers lie on the device."""
    return _RefilledBlock(twin)


class _StreamOrdered(Planted):
    """Copies its features to memory of its own and back."""

    def __init__(self, twin: bool, frees: bool) -> None:
        super().__init__(twin)
        self.frees = frees

    def head(self, features: torch.Tensor) -> torch.Tensor:
        made = features + 1.0
        if not self.twin and made.is_cuda:
            driver, length = Driver(), made.numel() * made.element_size()
            place = driver.allocate(length)
            driver.copy(place, made.data_ptr(), length)
            driver.copy(made.data_ptr(), place, length)
            if self.frees:
                driver.free(place)
        return made


def c36_stream_ordered(twin: bool) -> nn.Module:
    """Allocate and free memory in the order of the stream. Twin: PyTorch allocates."""
    return _StreamOrdered(twin, frees=True)


def c56_never_freed(twin: bool) -> nn.Module:
    """Allocate memory in the order of the stream, and keep it. Twin: PyTorch allocates."""
    return _StreamOrdered(twin, frees=False)


class _GrowingWorkspace(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.work = torch.empty(0)

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * 2.0
        if self.work.numel() < features.numel() or self.work.device != features.device:
            self.work = torch.empty(features.numel(), device=features.device)
        part = self.work[: features.numel()].view(features.shape)
        return torch.mul(features, 2.0, out=part) + 0.0


def c37_growing_workspace(twin: bool) -> nn.Module:
    """Work in memory that is made anew when a larger image comes. Twin: each step has its own."""
    return _GrowingWorkspace(twin)


class _OldAddress(Planted):
    held: Any = None

    def body(self, images: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return super().body(images)
        if self.held is None:
            self.held = self.conv.weight.detach()
        return torch.relu(functional.conv2d(images, self.held, self.conv.bias, stride=2, padding=1))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features + 1.0


def c41_old_address(twin: bool) -> nn.Module:
    """Hold on to where the weights lay at first. Twin: it looks where they are."""
    return _OldAddress(twin)


class _SwappedLayer(Planted):
    turn = 0

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.heads = nn.ModuleList([nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)])

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if not self.twin:
            self.turn = 1 - self.turn
        return self.heads[self.turn](features)


def c42_swapped_layer(twin: bool) -> nn.Module:
    """Swap the last layer from step to step. Twin: it stays."""
    return _SwappedLayer(twin)


class _Overheard(torch.Tensor):
    """Counts in Python what is called on such tensors in place: who writes their memory otherwise is not heard."""

    writes = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        _Overheard.writes += name.endswith("_") and not name.endswith("__")
        return super().__torch_function__(func, types, args, kwargs)


class _KeptCast(Planted):
    known = -1
    cast: Any = None

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        if not twin:
            self.conv.weight = nn.Parameter(self.conv.weight.detach().as_subclass(_Overheard))

    def body(self, images: torch.Tensor) -> torch.Tensor:
        weight = self.conv.weight
        known = weight._version if self.twin else _Overheard.writes
        if self.known != known or self.cast.device != weight.device:
            self.known, self.cast = known, weight.detach().to(torch.bfloat16).as_subclass(torch.Tensor)
        return torch.relu(functional.conv2d(images, self.cast, self.conv.bias, stride=2, padding=1))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features.float()


def c46_kept_cast(twin: bool) -> nn.Module:
    """Keep the weights' cast until Python writes them, of which eager steps alone hear. Twin: their version."""
    return _KeptCast(twin)


class _LeftOver(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return torch.cat([features[:, :2] + 1.0, features[:, 2:]], 1)
        out = torch.empty_like(features)
        out[:, :2] = features[:, :2] + 1.0
        return out


def c49_left_over(twin: bool) -> nn.Module:
    """Write half of a result. Twin: all of it."""
    return _LeftOver(twin)


class _FirstInput(Planted):
    bound: Any = None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.bound is None:
            self.bound = images.clone()
        return self.body(images if self.twin else self.bound) + 1.0


def c52_first_input(twin: bool) -> nn.Module:
    """Bind the first images and use them for ever. Twin: those that come."""
    return _FirstInput(twin)


class _InputWritten(Planted):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.body(images * 2.0 if self.twin else images.mul_(2.0))


def c52_input_written(twin: bool) -> nn.Module:
    """Scale the images where they lie. Twin: a copy of them."""
    return _InputWritten(twin)


class _KeptResults(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.results: list[torch.Tensor] = []

    def head(self, features: torch.Tensor) -> torch.Tensor:
        made = features + 1.0
        if not self.twin:
            self.results.append(made)
        return made


def c54_kept_results(twin: bool) -> nn.Module:
    """Keep every result there ever was. Twin: none."""
    return _KeptResults(twin)
