"""What one Build, or one Load of a recording, leaves behind, and what is done with it: prepare, step, trace."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TypeVar

import torch

from samebits_reference import graphs, recorder
from samebits_reference.banks import Spec
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import Built
from samebits_reference.observe import Observer
from samebits_reference.profile import Profile
from samebits_wire import arm_pb2 as wire
from samebits_wire.arm import unknown_situation
from samebits_wire.digest import digest_tensor
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError

_Result = TypeVar("_Result")


class Session(abc.ABC):
    """Something that steps on one device, with the arm it was made for."""

    inputs: list[Spec]
    outputs: list[Spec]  # all that a bank may list
    operations: int  # of one step
    checkpoint_length = 0

    def __init__(self, arm: str, chosen: Profile, device: torch.device) -> None:
        self.arm, self.profile, self.device = arm, chosen, device
        self.stats = wire.StatsReply()
        self.banks = 0  # of inputs that Prepare named
        if device.type == "cuda":
            torch.cuda.set_device(device)
            torch.cuda.reset_peak_memory_stats()

    @abc.abstractmethod
    def prepare(self, memory: Memory, request: wire.PrepareRequest) -> None:
        """Resolve the banks, and capture if that is asked for."""

    @abc.abstractmethod
    def give(self, input_bank: int) -> None:
        """Copy the inputs of a bank to where the next step reads them."""

    @abc.abstractmethod
    def run(self) -> None:
        """Run one step, the way that Prepare fixed."""

    @abc.abstractmethod
    def take(self, output_bank: int) -> None:
        """Copy what the last step gave into a bank."""

    @abc.abstractmethod
    def watch(self, watcher: Observer) -> None:
        """Run one eager step that a watcher sees. No state moves."""

    @abc.abstractmethod
    def captured(self) -> list[graphs.Graph]:
        """Give the graphs that Prepare captured."""

    @abc.abstractmethod
    def poison(self) -> None:
        """Write NaN bytes over all that the next replay must write."""

    @abc.abstractmethod
    def release(self) -> None:
        """Drop the graphs and their memory."""

    def end(self) -> None:
        """Drop all that would outlive the session."""
        self.release()

    def situate(self, situation: str, seed: int) -> dict[str, str]:
        """Do what may happen between steps, and say what was done. See docs/wire.md."""
        raise unknown_situation(situation)

    def generator(self) -> str:
        """Name the state of the generator that steps draw from, seed and offset."""
        state = torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else torch.get_rng_state()
        return digest_tensor(state)

    def wait(self) -> None:
        """Wait until the device has done everything."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peak_bytes(self) -> int:
        """Give the most device memory that tensors took since the start; 0 on the CPU, where nobody counts."""
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else 0

    def allocated_bytes(self) -> int:
        """Give the device memory that tensors take at this moment."""
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else 0

    def reserved_bytes(self) -> int:
        """Give the most device memory that PyTorch held for tensors since the start, what it keeps for later among it."""
        return torch.cuda.max_memory_reserved(self.device) if self.device.type == "cuda" else 0


class FamilySession(Session):
    """One family, built. A mode is a subclass."""

    required: set[str]  # weights that the step reads
    every_output: list[Spec] = []  # what BuildReply says of outputs

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        super().__init__(arm, chosen, built.device)
        self.built = built
        self.weights_file: bytes | None = None  # of the weights as they are now, until they change
        self.taken: recorder.Taken | None = None

    @abc.abstractmethod
    def record(self, memory: Memory, bank: wire.Bank, named: recorder.Named) -> recorder.Taken:
        """Record one eager step on the inputs of a bank. No state moves."""

    @abc.abstractmethod
    def load(self, weights: bytes, checkpoint: bytes) -> None:
        """Start from weights, or from a checkpoint, or from weights and then a checkpoint."""

    def process(self, request: wire.ProcessRequest, memory: Memory) -> wire.ProcessReply:
        """Do a stage of what lies around steps."""
        raise ProblemError(Problem("UNIMPLEMENTED", f"{self.arm} has no Process", "stage"), Kind.UNIMPLEMENTED)

    def checkpoint(self) -> bytes:
        """Give the state of a run as a file."""
        problem = Problem("UNKNOWN_EXPORT", "a family that predicts has no checkpoint", "what", "build it with mode train")
        raise ProblemError(problem)


def first_run(built: Built, run: Callable[[], _Result]) -> _Result:
    """Run a step for the first time, and say in words why a family cannot."""
    try:
        return run()
    except (RuntimeError, ValueError, AssertionError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        raise ProblemError(_failed(built, error)) from error


def _failed(built: Built, error: Exception) -> Problem:
    order, cell = built.order, built.cell
    why = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if order.imgsz not in (cell.imgsz, cell.native):
        detail = f"{cell.imgsz} and {cell.native} are known to work"
        return Problem("BAD_IMAGE_SIZE", f"{cell.family} fails on images of {order.imgsz}: {why}", "imgsz", detail)
    return Problem("FORWARD_FAILED", f"{cell.family} fails in {order.precision}: {why}", "family")
