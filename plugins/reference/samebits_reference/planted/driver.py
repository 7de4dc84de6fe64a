"""Calls of the CUDA driver that PyTorch does not see."""

from __future__ import annotations

import ctypes

import torch

LEGACY_STREAM = 0


class Driver:
    """The driver, opened at its first use: it is no part of a family's state."""

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def allocate(self, length: int) -> int:
        """Allocate memory in the order of the current stream."""
        place = ctypes.c_uint64()
        self._call("cuMemAllocAsync", ctypes.byref(place), ctypes.c_size_t(length), _current())
        return place.value

    def free(self, place: int) -> None:
        """Free it in the same order."""
        self._call("cuMemFreeAsync", ctypes.c_uint64(place), _current())

    def copy(self, target: int, source: int, length: int) -> None:
        """Copy memory of the device in the order of the current stream."""
        addresses = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self._call("cuMemcpyDtoDAsync_v2", *addresses, ctypes.c_size_t(length), _current())

    def zero(self, place: int, length: int) -> None:
        """Write zeros on the legacy stream, whatever the current one is."""
        stream = ctypes.c_void_p(LEGACY_STREAM)
        self._call("cuMemsetD8Async", ctypes.c_uint64(place), ctypes.c_ubyte(0), ctypes.c_size_t(length), stream)


def _current() -> ctypes.c_void_p:
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


def is_capturing(features: torch.Tensor) -> bool:
    """Ask whether the current stream is captured, past the public function."""
    return bool(features.is_cuda and torch._C._cuda_isCurrentStreamCapturing())
