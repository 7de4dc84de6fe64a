"""Memory that runs out is a refusal, and memory that was used is full of NaN: the process goes on serving."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from samebits_wire.problems import Kind, Problem, ProblemError

_Call = TypeVar("_Call", bound=Callable[..., Any])


def serving(call: _Call) -> _Call:
    """Turn an allocation that failed into a refusal, and free what can be freed: the process goes on serving."""

    @functools.wraps(call)
    def guarded(self: object, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(self, *args, **kwargs)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            what = (str(error).strip().splitlines() or ["no memory"])[0]
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        raise ProblemError(Problem("OUT_OF_MEMORY", what, call.__name__), Kind.OUT_OF_MEMORY)

    return guarded  # type: ignore[return-value]


def choosing(call: _Call) -> _Call:
    """Refuse what an allocation that failed may have changed.

    PyTorch catches a workspace that finds no room and takes the next algorithm of cuDNN's list, whose bits may be others.
    """

    @functools.wraps(call)
    def guarded(self: object, *args: Any, **kwargs: Any) -> Any:
        before = _failures()
        result = call(self, *args, **kwargs)
        if _failures() > before:
            what = "an allocation on the GPU failed, and PyTorch went on with another algorithm: its bits may be others"
            raise ProblemError(Problem("OUT_OF_MEMORY", what, call.__name__), Kind.OUT_OF_MEMORY)
        return result

    return guarded  # type: ignore[return-value]


def _failures() -> int:
    """Count the allocations that failed, those that PyTorch caught among them."""
    if not torch.cuda.is_initialized():
        return 0
    return sum(
        torch.cuda.memory_stats_as_nested_dict(device).get("num_ooms", 0) for device in range(torch.cuda.device_count())
    )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Say whether an error, or one it came from, is an allocation that failed."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(error):
            return True
        error = error.__context__
    return False


def churn(device: torch.device) -> None:
    """Allocate, fill and free blocks of many sizes, in an order that leaves holes."""
    blocks = [torch.full((1 << size,), 0xFF, dtype=torch.uint8, device=device) for size in range(9, 27)]
    blocks += [torch.full((size * 1000 + 513,), 0xFF, dtype=torch.uint8, device=device) for size in range(1, 200)]
    del blocks[::2]
    blocks.append(torch.full((1 << 20,), 0xFF, dtype=torch.uint8, device=device))
    del blocks
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
