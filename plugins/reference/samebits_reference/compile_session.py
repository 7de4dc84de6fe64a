"""The arm reference-compile: the same step through torch.compile with CUDA graphs, to compare times with.

The profile's switches are set as for every arm, and nothing else is chosen: mode reduce-overhead, otherwise the compiler's
defaults. It fuses and reorders arithmetic, so nobody claims that its bits are eager's.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import torch

from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import Built, flatten
from samebits_reference.observe import Observer
from samebits_reference.predict_session import PredictSession
from samebits_reference.profile import Profile
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError

MODE = "reduce-overhead"
WARM_UP_RUNS = 4  # the first compiles, the second captures; then two as all that follow


class CompileSession(PredictSession):
    """A family whose steps are compiled."""

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        """Run the family eagerly first, as every arm does."""
        self._compiled: Any = None
        super().__init__(arm, chosen, built)
        self._nodes = 0  # of all graphs of a step; 0: nobody could count them

    def step(self, statics: list[torch.Tensor]) -> Any:
        """Run one step: eagerly until Prepare has compiled it."""
        if self._compiled is None:
            return super().step(statics)
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad(), self.built.autocast():
            return self._compiled(statics[0])

    def prepare(self, memory: Memory, request: wire.PrepareRequest) -> None:
        """Compile, and run until nothing new happens."""
        super().prepare(memory, request)
        self._start_anew()

        def forward(images: torch.Tensor) -> Any:
            return self.built.forward(images)

        self._compiled = torch.compile(forward, mode=MODE)
        graphs: list[int] = []
        try:
            with _counting(graphs):
                for _ in range(WARM_UP_RUNS):
                    self.step(self._at.statics)
        except Exception as error:  # of any of the compilers; the arm is optional, and its process goes on serving
            self._compiled = None
            if is_out_of_memory(error):
                raise
            what = f"torch.compile cannot compile this step: {type(error).__name__}: {_first_line(error)}"
            raise ProblemError(Problem("COMPILE_FAILED", what, "prepare"), Kind.UNIMPLEMENTED) from error
        self.wait()
        self.profile.verify()
        self._nodes = 0 if 0 in graphs else sum(graphs)
        self.stats.captures += len(graphs)
        self._note_breaks()

    def run(self) -> None:
        """Run one compiled step and keep its outputs for `take`."""
        if self._compiled is None:
            super().run()
            return
        self._outputs = []  # they lie where this step will write
        self._outputs = list(flatten(self.step(self._at.statics)))
        self.stats.replays += 1
        self.stats.launches += self._nodes

    def watch(self, watcher: Observer) -> None:
        """Run one eager step that a watcher sees."""
        with watcher:
            super().step(self._at.statics)

    def release(self) -> None:
        """Drop what was compiled, with its graphs."""
        super().release()
        if self._compiled is not None:
            self._compiled = None
            torch.compiler.reset()

    def _start_anew(self) -> None:
        """Forget what the eager runs took of the device, so that the peaks are the compiled step's."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    def _note_breaks(self) -> None:
        """Say what kept the step from being one graph."""
        from torch._dynamo.utils import counters

        breaks, skips = sum(counters["graph_break"].values()), counters["inductor"]["cudagraph_skips"]
        parts = [f"{breaks} breaks of the traced graph"] if breaks else []
        parts += [f"{skips} parts without CUDA graph"] if skips else []
        self.stats.fallback_reason = " and ".join(parts)


@contextlib.contextmanager
def _counting(graphs: list[int]) -> Iterator[None]:
    """Add the number of nodes of every graph that PyTorch captures meanwhile; 0 where the driver does not say."""
    end = torch.cuda.CUDAGraph.capture_end

    def counted(graph: torch.cuda.CUDAGraph) -> None:
        nodes = _nodes_of_capture()
        end(graph)
        if nodes is not None:
            graphs.append(nodes)

    torch.cuda.CUDAGraph.capture_end = counted  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.cuda.CUDAGraph.capture_end = end  # type: ignore[method-assign]


def _nodes_of_capture() -> int | None:
    """Ask the driver what the capture on the current stream holds. None: an empty graph, which only makes a pool."""
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        status, number, graph, count = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        asked = driver.cuStreamGetCaptureInfo_v2(
            stream, ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None
        )
        if asked == 0 and graph.value and driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0:
            return count.value or None
    return 0


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["it does not say why"])[0]
