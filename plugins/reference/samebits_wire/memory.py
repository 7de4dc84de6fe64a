"""The memory that a plugin shares with its host. Nothing is allocated here: the host says where things lie."""

from __future__ import annotations

import math
import mmap
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from samebits_wire import arm_pb2, recording_pb2
from samebits_wire.problems import Kind, Problem, ProblemError

if TYPE_CHECKING:
    import torch

ALIGNMENT = 64
CONTROL_BYTES = 4096

_SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}


def dtype_name(dtype: int | str | torch.dtype) -> str:
    """Give PyTorch's name (float32) of a dtype from the wire, of a torch.dtype, or of a name itself."""
    if isinstance(dtype, int):
        known = dtype in recording_pb2.DType.values()
        name = recording_pb2.DType.Name(dtype).removeprefix("DTYPE_").lower() if known else str(dtype)
    else:
        name = str(dtype).removeprefix("torch.")
    if name not in _SIZES:
        raise ProblemError(Problem("DTYPE", f"{name} is not a dtype of the wire"))
    return name


class Memory:
    """Maps ranges of the shared memory as the host attaches them. Safe for concurrent use."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._ranges: list[tuple[int, mmap.mmap]] = []

    def attach(self, offset: int, length: int) -> None:
        """Map a further range, which must lie within the memory: a mapping past its end would fault at first use."""
        size = os.fstat(self._descriptor).st_size
        page = mmap.ALLOCATIONGRANULARITY
        if offset < CONTROL_BYTES or offset % page or length <= 0 or length % page or offset + length > size:
            raise ProblemError(
                Problem("REGION", f"cannot attach {offset}+{length}: the shared memory has {size} bytes, pages of {page}")
            )
        try:
            mapped = mmap.mmap(self._descriptor, length, offset=offset)
        except OSError as error:
            problem = Problem("SHARED_MEMORY", f"cannot map {length} bytes of shared memory: {error}")
            raise ProblemError(problem, Kind.OUT_OF_MEMORY) from error
        with self._lock:
            self._ranges.append((offset, mapped))

    def view(self, region: arm_pb2.Region) -> memoryview:
        """Give the bytes of a region. They are shared with the host and stay mapped until the process ends."""
        mapped, start = self._find(region)
        return memoryview(mapped)[start : start + region.length]

    def tensor(self, region: arm_pb2.Region, dtype: int | str | torch.dtype, sizes: Sequence[int]) -> torch.Tensor:
        """Give a CPU tensor that lies on a region, without a copy. dtype is one of the wire, of torch, or a name."""
        import torch

        mapped, start = self._find(region)
        name, numel = _fits(region, dtype, sizes)
        element = getattr(torch, name)
        if numel == 0:
            return torch.empty(tuple(sizes), dtype=element)
        return torch.frombuffer(mapped, dtype=element, count=numel, offset=start).view(tuple(sizes))

    def placed(self, placed: arm_pb2.PlacedTensor) -> torch.Tensor:
        """Give the CPU tensor of one entry of a bank."""
        try:
            return self.tensor(placed.region, placed.spec.dtype, placed.spec.sizes)
        except ProblemError as error:
            problems = (Problem(p.reason, p.summary, placed.spec.name, p.detail) for p in error.problems)
            raise ProblemError(problems, error.kind) from error

    def check(self, placed: arm_pb2.PlacedTensor) -> None:
        """Refuse a tensor whose region is not there or not of its size."""
        self._find(placed.region)
        _fits(placed.region, placed.spec.dtype, placed.spec.sizes)

    def ranges(self) -> list[memoryview]:
        """Give the attached ranges, for one who pins them for a device. Each stays where it is until the process ends."""
        with self._lock:
            return [memoryview(mapped) for _, mapped in self._ranges]

    def _find(self, region: arm_pb2.Region) -> tuple[mmap.mmap, int]:
        if region.offset % ALIGNMENT:
            raise ProblemError(
                Problem("REGION", f"region {region.offset}+{region.length} is not aligned to {ALIGNMENT} bytes")
            )
        with self._lock:
            for offset, mapped in self._ranges:
                if offset <= region.offset and region.offset + region.length <= offset + len(mapped):
                    return mapped, region.offset - offset
        raise ProblemError(
            Problem("REGION", f"region {region.offset}+{region.length} lies in no attached range of the shared memory")
        )


def _fits(region: arm_pb2.Region, dtype: int | str | torch.dtype, sizes: Sequence[int]) -> tuple[str, int]:
    """Give the dtype's name and the number of elements of a tensor that fills its region."""
    name = dtype_name(dtype)
    if any(size < 0 for size in sizes):
        raise ProblemError(Problem("TENSOR", f"sizes {list(sizes)} cannot be"))
    numel = math.prod(sizes)
    if numel * _SIZES[name] != region.length:
        needs = f"{name}{list(sizes)} takes {numel * _SIZES[name]} bytes"
        raise ProblemError(Problem("REGION", f"{needs}, its region has {region.length}"))
    return name, numel
