"""Memory as a recording lays it out: storages with the bytes and the alignment that they had, and tensors on them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference import decode
from samebits_wire import recording_pb2 as pb
from samebits_wire.problems import Problem, ProblemError

_ALIGNMENT = 512  # of whatever PyTorch's allocator for CUDA gives


class Storages:
    """The storages of a recording on one device. In double precision every float takes the place of a float64."""

    def __init__(self, recording: pb.Recording, device: torch.device, *, double: bool) -> None:
        self._recording, self._device, self._double = recording, device, double
        self._blocks: dict[int, torch.UntypedStorage] = {}
        self._owners: dict[int, torch.Tensor] = {}  # of memory that a block lies inside of
        self._skews = self._find_skews()

    def allocate(self, index: int) -> None:
        """Give a storage memory, full of zeros."""
        length = self._bytes(index)
        skew = self._skews.get(index, 0)
        owner = torch.zeros(length + skew, dtype=torch.uint8, device=self._device)
        if not skew:
            self._blocks[index] = owner.untyped_storage()
            return
        self._owners[index] = owner
        place = owner.data_ptr() + skew
        self._blocks[index] = torch._C._construct_storage_from_data_pointer(place, self._device, length)  # type: ignore[assignment]

    def bind(self, index: int, made: torch.Tensor) -> None:
        """Let a storage be the one that an operation made."""
        self._blocks[index] = made.untyped_storage()

    def drop(self, index: int) -> None:
        """Forget a storage."""
        self._blocks.pop(index, None)
        self._owners.pop(index, None)

    def bound(self, index: int) -> torch.UntypedStorage | None:
        """Give a storage's memory, if it has some."""
        return self._blocks.get(index)

    def tensor(self, value: pb.Value) -> torch.Tensor:
        """Give the tensor that a value is. KeyError: nothing has made its storage."""
        block = self._blocks[value.storage]
        with _disable_current_modes():
            empty = torch.empty(0, dtype=self.dtype(value.dtype), device=block.device)  # numbers may lie on the CPU
            return empty.set_(block, value.offset, tuple(value.sizes), tuple(value.strides))

    def whole(self, index: int) -> torch.Tensor:
        """Give a storage as one flat tensor."""
        storage = self._recording.storages[index]
        numel = storage.bytes // decode.dtype(storage.dtype).itemsize
        return self.tensor(pb.Value(storage=index, dtype=storage.dtype, sizes=[numel], strides=[1]))

    def dtype(self, number: int) -> torch.dtype:
        """Give the dtype that a dtype of the recording has here."""
        return decode.dtype(number, double=self._double)

    def check(self) -> None:
        """Refuse what has no double precision: storages on which values of several dtypes lie."""
        for index, value in enumerate(self._recording.values):
            storage = self._recording.storages[value.storage]
            floating = {decode.dtype(of).is_floating_point for of in (value.dtype, storage.dtype)}
            if self._double and value.dtype != storage.dtype and floating != {False}:
                what = "values of several dtypes lie on one storage: there is no such thing in double precision"
                raise ProblemError(Problem("NO_DOUBLE_PRECISION", what, f"values[{index}]"))

    def _bytes(self, index: int) -> int:
        storage = self._recording.storages[index]
        return storage.bytes // decode.dtype(storage.dtype).itemsize * self.dtype(storage.dtype).itemsize

    def _find_skews(self) -> dict[int, int]:
        """Give how far storages lie behind a multiple of 512, so that values have the alignment that they had.

        Libraries choose kernels by it. It is nothing for whatever PyTorch's allocator gave.
        """
        skews: dict[int, int] = {}
        if self._recording.header.device_type != "cuda" or self._double:
            return skews
        for value in self._recording.values:
            have = lowest_bit(value.offset * decode.dtype(value.dtype).itemsize)
            if value.alignment < have:
                skews[value.storage] = value.alignment
        return skews


def lowest_bit(number: int) -> int:
    """Give the largest power of two that divides a number, at most 512."""
    return min(number & -number, _ALIGNMENT) if number else _ALIGNMENT


def same_geometry(made: torch.Tensor, value: pb.Value) -> bool:
    """Say whether a tensor lies as a value says. A dimension of one element has no stride that anybody can see."""
    if made.numel() == 0:
        return True
    return made.storage_offset() == value.offset and _seen(made.shape, made.stride()) == _seen(value.sizes, value.strides)


def _seen(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    return [stride for size, stride in zip(sizes, strides, strict=True) if size != 1]
