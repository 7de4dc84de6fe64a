"""Captures a step into a CUDA graph with PyTorch's own means, and replays it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import flatten
from samebits_wire.problems import Kind, Problem, ProblemError

WARM_UP_RUNS = 3


class Graph:
    """One captured step. Its outputs lie at fixed addresses: the next replay writes over them."""

    def __init__(self, step: Callable[[], Any]) -> None:
        """Warm up on a side stream, then capture there. step reads static inputs."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_RUNS):
                warm = [tensor for _, tensor in flatten(step())]
        # A real wait: replays must not meet work of the warm-up.
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        try:
            with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
                self.outputs = list(flatten(step()))
            self._graph.instantiate()
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            problem = Problem("CAPTURE_FAILED", f"PyTorch cannot capture this step: {_first_line(error)}", "prepare")
            raise ProblemError(problem, Kind.UNIMPLEMENTED) from error
        self.nodes = _count_nodes(self._graph)
        # What warm-up and capture share was made before either (a cached constant): no replay writes it.
        shared = {tensor.untyped_storage()._cdata for tensor in warm}
        self._written = [tensor for _, tensor in self.outputs if tensor.untyped_storage()._cdata not in shared]

    def replay(self) -> None:
        """Launch the captured step."""
        self._graph.replay()

    def poison(self, but: Sequence[torch.Tensor]) -> None:
        """Write NaN bytes over every output that a replay writes. but are static inputs, which may be outputs too."""
        kept = {tensor.untyped_storage()._cdata for tensor in but}
        for tensor in self._written:
            block = tensor.untyped_storage()
            if block._cdata not in kept:
                torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(block).fill_(0xFF)

    def release(self) -> None:
        """Drop the graph and its memory."""
        self.outputs, self._written = [], []
        self._graph.reset()


def _count_nodes(graph: torch.cuda.CUDAGraph) -> int:
    """Ask the driver, which torch has loaded. 0: it did not say."""
    with contextlib.suppress(OSError, AttributeError):
        count = ctypes.c_size_t()
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count)) == 0:
            return count.value
    return 0


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
