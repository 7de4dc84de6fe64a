"""Captures a step into a CUDA graph with PyTorch's own means, and replays it."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch

from samebits_reference import node_kinds
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import flatten
from samebits_reference.observe import Observer, operation_name, source_line
from samebits_wire.problems import Kind, Problem, ProblemError

WARM_UP_RUNS = 3


class Graph:
    """One captured step. Its outputs lie at fixed addresses: the next replay writes over them."""

    def __init__(self, step: Callable[[], Any], *, watched: bool = False) -> None:
        """Warm up on a side stream, then capture there. step reads static inputs; watched, it may not leave the stream."""
        before = torch.cuda.current_stream()
        stream = _side_stream(before.device_index)
        stream.wait_stream(before)
        watch = StreamWatch(stream)
        with torch.cuda.stream(stream):
            for run in range(WARM_UP_RUNS):
                with watch if watched and run == 0 else contextlib.nullcontext():
                    warm = [tensor for _, tensor in flatten(step())]
        # A real wait: replays must not meet work of the warm-up.
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        collecting = gc.isenabled()
        gc.disable()  # what a collection frees may not be freed while a stream captures
        try:
            # Who leaves the stream may come back to the capture, or not: that shows in the capture alone.
            with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"), watch.of_capture():
                self.outputs = list(flatten(step()))
            self._graph.instantiate()
        except Exception as error:  # a family may refuse in words of its own
            self.outputs = []
            with contextlib.suppress(RuntimeError):
                self._graph.reset()  # gives its memory back
            if is_out_of_memory(error) or isinstance(error, ProblemError):
                raise
            raise ProblemError([*watch.problems, _failure(error)], Kind.UNIMPLEMENTED) from error
        finally:
            torch.cuda.set_stream(before)  # PyTorch does not, if the end of the capture fails
            if collecting:
                gc.enable()
        self.kinds = node_kinds.count(self._graph)
        self.nodes = sum(self.kinds.values())
        self._refuse(watch)
        # What warm-up and capture share was made before either (a cached constant): no replay writes it.
        shared = {tensor.untyped_storage()._cdata for tensor in warm}
        self._written = [tensor for _, tensor in self.outputs if tensor.untyped_storage()._cdata not in shared]

    def _refuse(self, watch: StreamWatch) -> None:
        """Refuse a graph that does not hold the step, whatever it may give."""
        problems = list(watch.problems)
        if self.nodes == 0 and node_kinds.can_count():
            problems.insert(0, Problem("EMPTY_GRAPH", "nothing was captured: replays would do nothing", "prepare"))
        allocated, freed = self.kinds.get("alloc", 0), self.kinds.get("free", 0)
        if allocated > freed:
            what = f"the graph allocates {allocated} times and frees {freed} times: it cannot be launched twice"
            problems.append(Problem("ALLOC_IN_REGION", what, "prepare"))
        if problems:
            self.release()
            raise ProblemError(problems, Kind.UNIMPLEMENTED)

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


@functools.cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """Give the stream that captures run on: always the same, since cuBLAS keeps a workspace for each that it was ever on."""
    return torch.cuda.Stream(device)


class StreamWatch(Observer):
    """Finds operations that run on another stream than the one that was set for them.

    A family may leave the stream, and come back to it by events. Then a capture follows it. So nothing is wrong before
    the capture, and where no operation of the warm-up left the stream the capture is not watched.
    """

    def __init__(self, stream: torch.cuda.Stream) -> None:
        super().__init__()
        self.problems: list[Problem] = []
        self._stream, self._left, self._capturing = stream, False, False

    def of_capture(self) -> contextlib.AbstractContextManager[Any]:
        """Watch the capture, if there is a reason to."""
        self._capturing = True
        return self if self._left else contextlib.nullcontext()

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look where an operation is about to run."""
        if not self._capturing:
            self._left |= torch.cuda.current_stream() != self._stream
        elif not self.problems and not torch.cuda.is_current_stream_capturing():
            what = f"{operation_name(func)} runs on a stream that is not captured: no replay will do it"
            self.problems.append(Problem("OFF_STREAM_WORK", what, "prepare", source_line()))


_UNJOINED = "unjoined"  # in the driver's words for it


def _failure(error: Exception) -> Problem:
    why = _first_line(error)
    if _UNJOINED in str(error):
        what = f"work on a stream of the step's own is not waited for at its end: {why}"
        return Problem("UNJOINED_STREAM", what, "prepare")
    return Problem("CAPTURE_FAILED", f"PyTorch cannot capture this step: {why}", "prepare")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
