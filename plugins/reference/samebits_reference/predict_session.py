"""The mode predict: images go in, outputs come out, nothing is kept."""

from __future__ import annotations

from typing import Any

import torch

from samebits_reference import banks, graphs, recorder, weights
from samebits_reference.banks import Spec
from samebits_reference.families import Built, flatten
from samebits_reference.observe import Observer
from samebits_reference.profile import Profile
from samebits_reference.session import FamilySession, first_run
from samebits_reference.watchers import Reader
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Problem, ProblemError


class PredictSession(FamilySession):
    """A family that predicts."""

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        """Run a family twice: families cache constants on first use, and the second run is what every later one is."""
        super().__init__(arm, chosen, built)
        self.images = torch.zeros(built.input_sizes, device=built.device)  # the static input
        self.inputs = [Spec.of("images", self.images)]
        self.graph: graphs.Graph | None = None
        self._input_banks: list[list[torch.Tensor]] = []
        self._output_banks: list[list[torch.Tensor]] = []
        self._outputs: list[tuple[str, torch.Tensor]] = []
        reader = Reader(built.module)

        def twice() -> Any:
            built.step(self.images)
            with reader:
                return built.step(self.images)

        self.outputs = [Spec.of(name, tensor) for name, tensor in flatten(first_run(built, twice))]
        self.required, self.operations = reader.read, reader.count

    def record(self, memory: Memory, bank: wire.Bank, named: recorder.Named) -> recorder.Taken:
        """Record one eager step."""
        self._read(banks.place(memory, bank, self.inputs, "inputs"))
        return recorder.record(self.built, self.images, named)

    def load(self, weights_file: bytes, checkpoint: bytes) -> None:
        """Take weights."""
        if checkpoint:
            raise ProblemError(Problem("UNEXPECTED_CHECKPOINT", "a family that predicts has no state", "checkpoint"))
        self.built.load(weights.decode(weights_file), self.required)

    def prepare(self, memory: Memory, request: wire.PrepareRequest) -> None:
        """Resolve the banks, and capture."""
        self._input_banks = [
            banks.place(memory, bank, self.inputs, f"inputs[{index}]") for index, bank in enumerate(request.inputs)
        ]
        self._output_banks = [
            banks.place(memory, bank, self.outputs, f"outputs[{index}]") for index, bank in enumerate(request.outputs)
        ]
        self.release()
        if request.cuda_graph:
            self.profile.verify()
            self.graph = graphs.Graph(lambda: self.built.step(self.images))

    def give(self, input_bank: int) -> None:
        """Copy the images to the device."""
        self._read(self._input_banks[input_bank])

    def run(self) -> None:
        """Run one step and keep its outputs for `take`."""
        if self.graph is not None:
            self.graph.replay()
            self.stats.replays += 1
            self.stats.launches += self.graph.nodes
            self._outputs = self.graph.outputs
        else:
            self._outputs = list(flatten(self.built.step(self.images)))
            self.stats.eager_steps += 1
            self.stats.launches += self.operations

    def take(self, output_bank: int) -> None:
        """Copy the outputs out."""
        outputs, self._outputs = self._outputs, []
        if [Spec.of(name, tensor) for name, tensor in outputs] != self.outputs:
            raise ProblemError(Problem("OUTPUTS_CHANGED", "this step gave other outputs than the first", "outputs"))
        for (_, tensor), target in zip(outputs, self._output_banks[output_bank], strict=True):
            target.copy_(tensor)

    def watch(self, watcher: Observer) -> None:
        """Run one eager step that a watcher sees."""
        with watcher:
            self.built.step(self.images)

    def captured(self) -> list[graphs.Graph]:
        """Give the one graph there may be."""
        return [self.graph] if self.graph is not None else []

    def poison(self) -> None:
        """Write NaN bytes over the outputs of the graph."""
        if self.graph is not None:
            self.graph.poison([self.images])

    def release(self) -> None:
        """Drop the graph."""
        if self.graph is not None:
            self.graph.release()
        self.graph = None

    def _read(self, placed: list[torch.Tensor]) -> None:
        (images,) = placed
        self.images.copy_(images)
