"""The mode predict: images go in, outputs come out, nothing is kept."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch

from samebits_reference import banks, cells, graphs, recorder, situations, weights
from samebits_reference.banks import Spec
from samebits_reference.beside import Traces, check_capture
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import Built, flatten
from samebits_reference.holding import Holding
from samebits_reference.kept import Kept, keeps
from samebits_reference.nest import Frame
from samebits_reference.observe import Observer
from samebits_reference.predicting import Predictions
from samebits_reference.profile import Profile
from samebits_reference.reachable import Picture
from samebits_reference.running import Running
from samebits_reference.session import FamilySession, first_run
from samebits_reference.watchers import Reader
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Problem, ProblemError

# The sizes of all inputs, and what the keys hold: a graph of one situation is wrong in every other.
Signature = tuple[tuple[tuple[int, ...], ...], tuple[tuple[str, str], ...]]


_KEPT = 16  # situations that pictures of many sizes leave behind


@dataclasses.dataclass
class Situation:
    """Static inputs of one signature, and the graph of the step on them if one was captured."""

    statics: list[torch.Tensor]
    keys: dict[str, torch.Tensor]
    outputs: list[Spec]
    due: bool = False  # a graph is wanted
    keeps: bool | None = None  # something that follows from weights, until these have other versions; nobody has looked yet
    graph: graphs.Graph | None = None
    holding: Holding | None = None  # what the graph holds
    frame: Frame | None = None  # of the outputs


@dataclasses.dataclass(frozen=True)
class InputBank:
    """Places in shared memory of one step's inputs. What lies there may change from step to step."""

    inputs: list[torch.Tensor]
    keys: dict[str, torch.Tensor]

    @property
    def signature(self) -> Signature:
        """Say which graph holds for what lies there now."""
        sizes = tuple(tuple(tensor.shape) for tensor in self.inputs)
        return sizes, tuple((name, f"{list(key.shape)} {key.tolist()}") for name, key in self.keys.items())


class PredictSession(FamilySession):
    """A family that predicts. A bank may hold images of another size than the first, or another content of the keys."""

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        """Run a family twice: families cache constants on first use, and the second run is what every later one is."""
        super().__init__(arm, chosen, built)
        self.inputs = self.specs()
        self._situations: dict[Signature, Situation] = {}
        self._predictions: Predictions | None = None
        self.graphs = False  # steps are replays
        self.fault: Callable[[], None] | None = None  # interrupts the next capture
        self._traces, self._kept, self._running = Traces(), Kept(), Running()
        self.left_behind: list[torch.Tensor] = []  # memory that weights lay in before they moved
        self._input_banks: list[InputBank] = []
        self._output_banks: list[tuple[list[Spec], list[torch.Tensor]]] = []
        self._outputs: list[tuple[str, torch.Tensor]] = []
        reader = Reader(built.module)
        self._at = self._learn(InputBank(self._statics(self.inputs), dict(built.keys)), reader)
        self.outputs = self._at.outputs
        self.required, self.operations = reader.read, reader.count

    # What a subclass may do otherwise.

    def specs(self) -> list[Spec]:
        """Give the inputs of a step, images first."""
        return [Spec("images", torch.float32, self.built.input_sizes)]

    def step(self, statics: list[torch.Tensor]) -> Any:
        """Run one step eagerly."""
        return self.built.step(statics[0])

    # The steps of a session.

    def record(self, memory: Memory, bank: wire.Bank, named: recorder.Named) -> recorder.Taken:
        """Record one eager step of what was built."""
        self._give(self._place(memory, bank, "inputs"))
        images, before = self._at.statics[0], self._picture()
        with self._running.watch():
            taken = recorder.record(self.built, images, named, observed=not self._traces.began)
        self._running.check()
        if not self._traces.began:
            recorder.check_memory(self.built, images, taken)
        self._traces.check(before, self._picture(before), taken.data, taken.weights)
        return self._kept.made(self.built, images, named, taken)

    def load(self, weights_file: bytes, checkpoint: bytes) -> None:
        """Take weights."""
        if checkpoint:
            raise ProblemError(Problem("UNEXPECTED_CHECKPOINT", "a family that predicts has no state", "checkpoint"))
        self.built.load(weights.decode(weights_file), self.required)

    def prepare(self, memory: Memory, request: wire.PrepareRequest) -> None:
        """Resolve the banks, and capture a graph for each signature among them."""
        self.release()
        self._input_banks = [self._place(memory, bank, f"inputs[{index}]") for index, bank in enumerate(request.inputs)]
        named = [self._find(bank) for bank in self._input_banks]
        self._output_banks = [
            self._place_outputs(memory, bank, f"outputs[{index}]") for index, bank in enumerate(request.outputs)
        ]
        self.graphs = request.cuda_graph
        if request.cuda_graph:
            self.profile.verify()
            for situation in named or [self._at]:
                situation.due = True
                if situation.keeps is None:
                    self._enter(situation)
                    situation.keeps = keeps(self.built.module, functools.partial(self.step, situation.statics))
                if situation.graph is None:
                    self.capture(situation)
        self._forget(named)

    def give(self, input_bank: int) -> None:
        """Copy the images to the device, and see to the graph."""
        self._give(self._input_banks[input_bank])
        if self.graphs:
            self._renew(self._at)

    def run(self) -> None:
        """Run one step and keep its outputs for `take`."""
        graph = self._at.graph
        if graph is not None:
            graph.replay()
            self.stats.replays += 1
            self.stats.launches += graph.nodes
            self._outputs = graph.outputs
            return
        if self.graphs:
            self.stats.fallbacks += 1
            if not self.stats.latched:
                self.stats.fallback_reason = "there is no graph of these sizes and keys"
        self._outputs = list(flatten(self.step(self._at.statics)))
        self.stats.eager_steps += 1
        self.stats.launches += self.operations

    def launch(self) -> None:
        """Begin a step that nobody asked for, and do not wait for it."""
        if self._at.graph is not None:
            self._at.graph.replay()
        else:
            self.step(self._at.statics)

    def take(self, output_bank: int) -> None:
        """Copy the outputs out."""
        outputs, self._outputs = self._outputs, []
        specs, places = self._output_banks[output_bank]
        given = [Spec.of(name, tensor) for name, tensor in outputs]
        if given != self._at.outputs:
            raise ProblemError(Problem("OUTPUTS_CHANGED", "this step gave other outputs than the first", "outputs"))
        if given != specs:
            problem = Problem("WRONG_SHAPE", "these inputs give outputs of other sizes than the bank's", "output_bank")
            raise ProblemError(problem)
        for (_, tensor), target in zip(outputs, places, strict=True):
            target.copy_(tensor)

    @property
    def statics(self) -> list[torch.Tensor]:
        """Give the inputs that the next step reads."""
        return self._at.statics

    def watch(self, watcher: Observer) -> None:
        """Run one eager step that a watcher sees."""
        with watcher:
            self.step(self._at.statics)

    def captured(self) -> list[graphs.Graph]:
        """Give the graphs there are."""
        return [situation.graph for situation in self._situations.values() if situation.graph is not None]

    def poison(self) -> None:
        """Write NaN bytes over the outputs of the graphs."""
        for situation in self._situations.values():
            if situation.graph is not None:
                situation.graph.poison(situation.statics)

    def release(self) -> None:
        """Drop the graphs, and do not miss them."""
        self.drop()
        self.stats.latched = False
        for situation in self._situations.values():
            situation.due = False

    def end(self) -> None:
        """Drop the graphs, and the predictions that are under way."""
        super().end()
        if self._predictions is not None:
            self._predictions.abandon()

    # Graphs.

    def drop(self) -> int:
        """Drop the graphs: the next steps capture anew. Gives how many there were."""
        graphs_now = self.captured()
        for graph in graphs_now:
            graph.release()
        for situation in self._situations.values():
            situation.graph = situation.holding = None
        if graphs_now and self.device.type == "cuda":
            torch.cuda.empty_cache()  # the next capture's warm-up must not come on top of it
        return len(graphs_now)

    def capture(self, situation: Situation) -> None:
        """Capture the step on static inputs."""
        self._enter(situation)
        fault, self.fault = self.fault, None
        pictures: list[Picture] = []  # before and after the step that is captured

        def step() -> Any:
            pictures[:] = [self._picture()]
            made = self.step(situation.statics)
            if fault is not None:
                fault()
            pictures.append(self._picture(pictures[0]))
            return made

        with torch.cuda.device(self.device) if self.device.type == "cuda" else contextlib.nullcontext():
            graph = graphs.Graph(step, watched=True)
        before, after = pictures
        try:
            check_capture(before, after)
        except ProblemError:
            graph.release()
            raise
        situation.graph = graph
        situation.holding = Holding(self.built.module, *after.tensors.values(), versions=bool(situation.keeps))

    def recapture(self) -> int:
        """Capture whatever is due, and stay where the session is. Gives how many graphs there are then."""
        at = self._at
        for situation in self._situations.values():
            self._renew(situation)
        self._enter(at)
        return len(self.captured())

    def _renew(self, situation: Situation) -> None:
        """See that a graph still holds what is there. A capture that fails is the last until the situation release."""
        if situation.holding is not None and situation.holding.moved():
            self.stats.invalidations += self.drop()
        if situation.graph is not None or not situation.due or self.stats.latched:
            return
        try:
            self.capture(situation)
        except ProblemError as error:
            self._latch(error.problems[0].summary)
        except RuntimeError as error:
            if is_out_of_memory(error):  # this step is refused, and the next ones do not try again
                self._latch("the device had no memory for a graph")
            raise
        else:
            self.stats.captures += 1

    def _latch(self, why: str) -> None:
        self.stats.latched, self.stats.fallback_reason = True, why

    # Situations between steps.

    def situate(self, situation: str, seed: int) -> dict[str, str]:
        """Do what may happen between steps."""
        return situations.situate(self, situation, seed)

    # Pictures.

    def process(self, request: wire.ProcessRequest, memory: Memory) -> wire.ProcessReply:
        """Predict pictures, stage by stage."""
        if self._predictions is None:
            self._predictions = Predictions(self)
        return self._predictions.process(request, memory)

    def situation(self, memory: Memory, bank: wire.Bank, path: str) -> tuple[InputBank, Situation]:
        """Find the inputs of a bank, and what is known of steps on such."""
        placed = self._place(memory, bank, path)
        found = self._find(placed)
        self._forget([found, *list(self._situations.values())[-_KEPT:]])
        return placed, found

    # What a step runs on.

    def _picture(self, before: Picture | None = None) -> Picture:
        return self._running.picture(self.built, before)

    def _forget(self, kept: list[Situation]) -> None:
        """Drop all situations but some and the first, which is what was built."""
        first = next(iter(self._situations))
        for signature, situation in list(self._situations.items()):
            if signature != first and not any(situation is one for one in (*kept, self._at)):
                del self._situations[signature]

    def _statics(self, specs: list[Spec]) -> list[torch.Tensor]:
        return [torch.zeros(spec.sizes, dtype=spec.dtype, device=self.built.device) for spec in specs]

    def _learn(self, bank: InputBank, watcher: Observer) -> Situation:
        """Run a situation that is new twice."""
        situation = Situation(self._statics([Spec.of("", tensor) for tensor in bank.inputs]), bank.keys, [])
        self._enter(situation)

        def twice() -> Any:
            self.step(situation.statics)
            with self._running.watch(), watcher:
                return self.step(situation.statics)

        given = first_run(self.built, twice)
        situation.outputs, situation.frame = [Spec.of(name, tensor) for name, tensor in flatten(given)], Frame(given)
        self._situations[bank.signature] = situation
        return situation

    def _find(self, bank: InputBank) -> Situation:
        known = self._situations.get(bank.signature)
        if known is not None:
            return known
        keys = {name: key.clone() for name, key in bank.keys.items()}
        return self._learn(InputBank(bank.inputs, keys), Observer())

    def _enter(self, situation: Situation) -> None:
        self._at = situation
        self.built.keys.update(situation.keys)

    def _give(self, bank: InputBank) -> None:
        self._enter(self._find(bank))
        for static, given in zip(self._at.statics, bank.inputs, strict=True):
            static.copy_(given)

    # Banks.

    def _place(self, memory: Memory, bank: wire.Bank, path: str) -> InputBank:
        """Find the inputs of a bank. Its images may have another size, and keys may lie beside them."""
        specs = list(self.inputs)
        given = {placed.spec.name: tuple(placed.spec.sizes) for placed in bank.tensors}
        sizes = given.get("images", ())
        if len(specs) == 1 and sizes != specs[0].sizes and self._takes(sizes, path):
            specs[0] = dataclasses.replace(specs[0], sizes=sizes)
        keys = [Spec(name, key.dtype, given[name]) for name, key in self.built.keys.items() if name in given]
        placed = banks.place(memory, bank, [*specs, *keys], path)
        beside = {spec.name: tensor for spec, tensor in zip(keys, placed[len(specs) :], strict=True)}
        return InputBank(placed[: len(specs)], {**self._first_keys(), **beside})

    def _first_keys(self) -> dict[str, torch.Tensor]:
        """Give the keys of what was built."""
        return next(iter(self._situations.values())).keys

    def _takes(self, sizes: tuple[int, ...], path: str) -> bool:
        """Say whether these are the sizes of images at all, and refuse those that this family does not take."""
        if len(sizes) != 4 or sizes[1] != 3:
            return False
        problems = {
            str(problem): problem for side in sizes[2:] for problem in cells.check_shape(self.built.cell, side, sizes[0])
        }
        if problems:
            raise ProblemError([dataclasses.replace(problem, path=f"{path}/images") for problem in problems.values()])
        return True

    def _place_outputs(self, memory: Memory, bank: wire.Bank, path: str) -> tuple[list[Spec], list[torch.Tensor]]:
        """Find the outputs of a bank, which are those of one of the situations."""
        given = [(placed.spec.name, tuple(placed.spec.sizes)) for placed in bank.tensors]
        known = [situation.outputs for situation in self._situations.values()]
        specs = next((specs for specs in known if [(spec.name, spec.sizes) for spec in specs] == given), self.outputs)
        return specs, banks.place(memory, bank, specs, path)
