"""What one Build leaves behind: the family, its inputs and outputs, the banks, the graph."""

from __future__ import annotations

import dataclasses

import torch

from samebits_reference import graphs, recorder
from samebits_reference.banks import Spec
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import Built, flatten
from samebits_reference.profile import Profile
from samebits_reference.watchers import Reader
from samebits_wire.problems import Problem, ProblemError


@dataclasses.dataclass
class Session:
    """What Build made, and what was learnt about its step."""

    arm: str
    profile: Profile
    built: Built
    images: torch.Tensor  # the static input, on the device
    inputs: list[Spec]
    outputs: list[Spec]
    required: set[str]  # weights that the step reads
    operations: int  # of one step
    weights_file: bytes | None = None  # of the weights as they are now, until they are loaded anew
    taken: recorder.Taken | None = None
    input_banks: list[list[torch.Tensor]] = dataclasses.field(default_factory=list)
    output_banks: list[list[torch.Tensor]] = dataclasses.field(default_factory=list)
    graph: graphs.Graph | None = None

    def wait(self) -> None:
        """Wait until the device has done everything."""
        if self.built.device.type == "cuda":
            torch.cuda.synchronize(self.built.device)

    def peak_bytes(self) -> int:
        """Give the most device memory that tensors took since Build; 0 on the CPU, where nobody counts."""
        return torch.cuda.max_memory_allocated(self.built.device) if self.built.device.type == "cuda" else 0


def start(arm: str, chosen: Profile, built: Built) -> Session:
    """Run a family twice: families cache constants on first use, and the second run is what every later one is."""
    if built.device.type == "cuda":
        torch.cuda.set_device(built.device)
        torch.cuda.reset_peak_memory_stats()
    images = torch.zeros(built.input_sizes, device=built.device)
    reader = Reader(built.module)
    try:
        built.step(images)
        with reader:
            outputs = [Spec.of(name, tensor) for name, tensor in flatten(built.step(images))]
    except (RuntimeError, ValueError, AssertionError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        raise ProblemError(_forward_failed(built, error)) from error
    return Session(arm, chosen, built, images, [Spec.of("images", images)], outputs, reader.read, reader.count)


def _forward_failed(built: Built, error: Exception) -> Problem:
    order, cell = built.order, built.cell
    why = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if order.imgsz not in (cell.imgsz, cell.native):
        detail = f"{cell.imgsz} and {cell.native} are known to work"
        return Problem("BAD_IMAGE_SIZE", f"{cell.family} fails on images of {order.imgsz}: {why}", "imgsz", detail)
    return Problem("FORWARD_FAILED", f"{cell.family} fails in {order.precision}: {why}", "family")
