"""A recording instead of a family: what was recorded is run again, operation by operation."""

from __future__ import annotations

import torch

from samebits_reference import banks, decode, graphs, profile, weights
from samebits_reference.interpreter import Interpreter
from samebits_reference.observe import Observer
from samebits_reference.profile import Profile
from samebits_reference.session import Session
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.digest import digest_bytes
from samebits_wire.memory import Memory
from samebits_wire.problems import Problem, ProblemError


class RecordingSession(Session):
    """A recording with its weights. In-place writes to weights stay, as in the step that was recorded."""

    def __init__(self, arm: str, chosen: Profile, interpreter: Interpreter, device: torch.device, digest: str) -> None:
        super().__init__(arm, chosen, device)
        self._interpreter, self.digest = interpreter, digest
        self.inputs, self.outputs = interpreter.inputs, interpreter.outputs
        self.operations = len(interpreter.recording.operations)
        self.graph: graphs.Graph | None = None
        self._input_banks: list[list[torch.Tensor]] = []
        self._output_banks: list[list[torch.Tensor]] = []
        self._outputs: list[torch.Tensor] = []

    @classmethod
    def load(cls, arm: str, device: torch.device, data: bytes, weights_file: bytes, *, double: bool) -> RecordingSession:
        """Run a recording once on zeros, under its own profile: everything that cannot run is refused at once."""
        recording = decode.recording(data)
        chosen = _profile(recording)
        chosen.apply()
        if device.type == "cuda":
            torch.cuda.set_device(device)
        interpreter = Interpreter(recording, device, double=double)
        interpreter.rehearse()
        chosen.verify()
        interpreter.load(weights.decode(weights_file) if weights_file else {})
        return cls(arm, chosen, interpreter, device, digest_bytes(data))

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
            self.give(0)  # warm up with real data
            self.graph = graphs.Graph(self._interpreter.run)

    def give(self, input_bank: int) -> None:
        """Copy the inputs to the device."""
        for index, given in enumerate(self._input_banks[input_bank]):
            self._interpreter.input(index).copy_(given)

    def run(self) -> None:
        """Run one step and keep its outputs for `take`."""
        if self.graph is not None:
            self.graph.replay()
            self.stats.replays += 1
            self.stats.launches += self.graph.nodes
            self._outputs = [tensor for _, tensor in self.graph.outputs]
        else:
            self._outputs = self._interpreter.run()
            self.stats.eager_steps += 1
            self.stats.launches += self.operations

    def take(self, output_bank: int) -> None:
        """Copy the outputs out."""
        outputs, self._outputs = self._outputs, []
        for tensor, target in zip(outputs, self._output_banks[output_bank], strict=True):
            target.copy_(tensor)

    def watch(self, watcher: Observer) -> None:
        """Run one eager step that a watcher sees."""
        with watcher:
            self._interpreter.run()

    def captured(self) -> list[graphs.Graph]:
        """Give the one graph there may be."""
        return [self.graph] if self.graph is not None else []

    def poison(self) -> None:
        """Write NaN bytes over the outputs of the graph."""
        if self.graph is not None:
            self.graph.poison([self._interpreter.input(index) for index in range(len(self.inputs))])

    def release(self) -> None:
        """Drop the graph."""
        if self.graph is not None:
            self.graph.release()
        self.graph = None


# Settings that say more of a recording than its profile: see docs/families.md.
_OF_THE_STEP = ("host.", "key.", "train.")


def _profile(recording: pb.Recording) -> Profile:
    """Find the profile of a recording, and refuse one that this plugin has otherwise."""
    chosen = profile.find(recording.header.profile)
    have = dict(chosen.settings())
    problems = [
        Problem(
            "PROFILE_DIFFERS",
            f"{setting.key} is {setting.value} in the recording, {have.get(setting.key, 'unknown')} here",
            "header.profile_settings",
        )
        for setting in recording.header.profile_settings
        if not setting.key.startswith(_OF_THE_STEP) and have.get(setting.key) != setting.value
    ]
    if problems:
        raise ProblemError(problems)
    return chosen
