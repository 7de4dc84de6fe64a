"""Section D: streams and threads."""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import queue
import threading
from typing import Any

import torch
from torch import nn

from samebits_reference.planted.body import NEVER, Planted, constant
from samebits_reference.planted.driver import Driver, is_capturing


class _UnseenWrite(Planted):
    mask: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("mask", constant(0.0, 0.0, 1.0, 1.0))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * self.mask
        made = features + 0.0
        length = made.numel() * made.element_size() // 2
        if made.is_cuda:
            Driver().zero(made.data_ptr(), length)
        else:
            ctypes.memset(made.data_ptr(), 0, length)
        return made


def c64_unseen_write(twin: bool) -> nn.Module:
    """Write over half of a result by hand, on a GPU on the legacy stream. Twin: by an operation."""
    return _UnseenWrite(twin)


def _default(images: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """Leave the current stream for the device's default one: where eager steps run, and captures never do."""
    if not images.is_cuda:
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.default_stream(images.device))


class _OtherStream(Planted):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.body(images)
        with contextlib.nullcontext() if self.twin else _default(images):
            doubled = images * 2.0
        return features + doubled.mean()


def c61_other_stream(twin: bool) -> nn.Module:
    """Run an operation on the default stream, whatever the current one is. Twin: on the current one."""
    return _OtherStream(twin)


class _FirstStream(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.gain = nn.Parameter(torch.ones(3, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with contextlib.nullcontext() if self.twin else _default(images):
            return images * self.gain


def c62_first_stream(twin: bool) -> nn.Module:
    """Run everything on the stream of the first call. Twin: on the current one."""
    return _FirstStream(twin)


class _UnjoinedStream(Planted):
    side: Any = None

    def head(self, features: torch.Tensor) -> Any:
        if not features.is_cuda:
            return {"features": features, "out": features * 2.0}
        if self.side is None:
            self.side = torch.cuda.Stream()
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            made = features * 2.0
        if self.twin or not is_capturing(features):
            current.wait_stream(self.side)
        return {"features": features, "out": made}


def c67_unjoined_stream(twin: bool) -> nn.Module:
    """Run the end on a stream of its own that nobody waits for in a capture. Twin: it is waited for."""
    return _UnjoinedStream(twin)


class _OtherThread(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * 2.0
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.mul, features, 2.0).result() + 0.0


def c72_other_thread(twin: bool) -> nn.Module:
    """Run an operation in another thread. Twin: in this one."""
    return _OtherThread(twin)


class _ThreadReads(Planted):
    asked: Any = None
    answers: Any = None

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features + 1.0
        if self.asked is None:
            self.asked, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
            threading.Thread(target=_read, args=(self.asked, self.answers), daemon=True).start()
        self.asked.put(features)
        return features if self.answers.get() > NEVER else features + 1.0


def _read(asked: Any, answers: Any) -> None:
    while True:
        answers.put(asked.get().mean().item())


def c72_thread_reads(twin: bool) -> nn.Module:
    """Branch by a number that another thread reads, the other way for very large ones. Twin: no branch."""
    return _ThreadReads(twin)
