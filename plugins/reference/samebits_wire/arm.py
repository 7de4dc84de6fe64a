"""What the author of a Python plugin writes: one way to run a step."""

from __future__ import annotations

from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError


class Arm:
    """One way to run a step. Override the methods that you have; the others answer UNIMPLEMENTED.

    Every method runs on the process's main thread, one at a time: grad mode, autocast and the current device stay what
    you made them. `serve` may be given the class itself: it is then made on that thread after the handshake, the place
    to import torch.

    Raise `ProblemError` to refuse a call. Any other exception reaches the host as an INTERNAL problem (RESOURCE_EXHAUSTED
    for MemoryError and torch's OutOfMemoryError, UNIMPLEMENTED for NotImplementedError), and the plugin goes on serving.

    Views and tensors from `memory` stay valid until the process ends, also when the host makes the memory larger:
    resolve the banks once in `prepare` and keep them for `step`.
    """

    def describe(self) -> wire.DescribeReply:
        """Say what the plugin is. `protocol` is filled in by `serve`."""
        raise _unimplemented("Describe")

    def build(self, request: wire.BuildRequest, memory: Memory) -> wire.BuildReply:
        """Make a family from its name and seed."""
        raise _unimplemented("Build")

    def record(self, request: wire.RecordRequest, memory: Memory) -> wire.RecordReply:
        """Run one eager step and record it. The result waits for `export`."""
        raise _unimplemented("Record")

    def export(self, request: wire.ExportRequest, memory: Memory) -> None:
        """Copy a result of `build` or `record` into request.region."""
        raise _unimplemented("Export")

    def load(self, request: wire.LoadRequest, memory: Memory) -> wire.LoadReply:
        """Take weights, and a recording if this arm runs recordings."""
        raise _unimplemented("Load")

    def prepare(self, request: wire.PrepareRequest, memory: Memory) -> wire.PrepareReply:
        """Fix the banks that `step` will name, and capture if a graph is asked for."""
        raise _unimplemented("Prepare")

    def step(self, input_bank: int, output_bank: int) -> None:
        """Read an input bank, run one step to its end, write an output bank. Indices are in range."""
        raise _unimplemented("Step")

    def disturb(self, request: wire.DisturbRequest) -> None:
        """Poison outputs and churn memory."""
        raise _unimplemented("Disturb")

    def situate(self, request: wire.SituateRequest) -> wire.SituateReply:
        """Do what may happen to an arm between steps, after `prepare`.

        docs/wire.md says what each is. Raise `unknown_situation` for what you do not know.
        """
        raise unknown_situation(request.situation)

    def trace(self, request: wire.TraceRequest, memory: Memory) -> wire.TraceReply:
        """Run one eager step and give the digest of every result of every operation."""
        raise _unimplemented("Trace")

    def measure(self, request: wire.MeasureRequest) -> wire.MeasureReply:
        """Time steps, transfers left out."""
        raise _unimplemented("Measure")

    def stats(self) -> wire.StatsReply:
        """Count what was done since `load`."""
        raise _unimplemented("Stats")

    def process(self, request: wire.ProcessRequest, memory: Memory) -> wire.ProcessReply:
        """Do a stage of what lies around steps. Stages and their settings are your own."""
        raise _unimplemented("Process")

    def close(self) -> None:
        """Free things at a graceful end. Not called when the host died."""


def unknown_situation(situation: str) -> ProblemError:
    """Make the problem of an arm that is asked for a situation it does not know. The gate for it is then skipped."""
    problem = Problem("UNKNOWN_SITUATION", f'this arm knows no situation "{situation}"')
    return ProblemError(problem, Kind.UNIMPLEMENTED)


def _unimplemented(call: str) -> ProblemError:
    return ProblemError(Problem("UNIMPLEMENTED", f"this plugin has no {call}"), Kind.UNIMPLEMENTED)
