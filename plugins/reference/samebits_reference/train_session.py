"""The mode train: a step moves parameters, buffers, momentum and averages, and nothing else moves them."""

from __future__ import annotations

import dataclasses

import torch

from samebits_reference import banks, cells, graphs, recorder, train_recorder, weights
from samebits_reference.banks import Spec
from samebits_reference.beside import Traces
from samebits_reference.families import Built
from samebits_reference.observe import Observer
from samebits_reference.profile import Profile
from samebits_reference.running import Running
from samebits_reference.session import FamilySession, first_run
from samebits_reference.train_state import Snapshot, State
from samebits_reference.training import Hyper, Training
from samebits_reference.watchers import Reader
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Problem, ProblemError

HYPER = ("lr", "weight_decay", "momentum", "ema_decay")
IGNORED = -100  # the label that cross entropy leaves out


@dataclasses.dataclass
class Batch:
    """Static inputs of one batch size, and the graph of the step on them if one was captured."""

    images: torch.Tensor
    targets: torch.Tensor
    graph: graphs.Graph | None = None
    traces: Traces = dataclasses.field(default_factory=Traces)  # of steps that were recorded


@dataclasses.dataclass(frozen=True)
class InputBank:
    """Places in shared memory of one step's inputs."""

    images: torch.Tensor
    targets: torch.Tensor
    hyper: dict[str, torch.Tensor]  # none where a step is only recorded

    def read_hyper(self) -> Hyper:
        """Give the hyperparameters that lie there now."""
        lr, weight_decay, (momentum,), (ema_decay,) = (self.hyper[name].tolist() for name in HYPER)
        return Hyper(lr, weight_decay, momentum, ema_decay)


class TrainSession(FamilySession):
    """A family that trains."""

    def __init__(self, arm: str, chosen: Profile, built: Built) -> None:
        """Run a step twice and set its state back: the second run is what every later one is."""
        super().__init__(arm, chosen, built)
        self.training = Training(built)
        self.step = self.training.step
        self._batches: dict[int, Batch] = {}
        self._tried = {built.order.batch}  # batch sizes that are known to work
        self._input_banks: list[InputBank] = []
        self._output_banks: list[list[tuple[str, torch.Tensor]]] = []
        self._given: tuple[Batch, Hyper] | None = None
        self._running = Running()
        self._loss = torch.empty(())
        self._learn()

    def _learn(self) -> None:
        batch = self._batch(self.built.order.batch)
        reader = Reader(self.built.module)
        classes: list[int] = []
        kept = Snapshot(self.built.module, self.built.device)
        hook = self.built.module.register_forward_hook(lambda _module, _args, logits: classes.append(logits.shape[-1]))

        def twice() -> torch.Tensor:
            self.step(batch.images, batch.targets)
            with self._running.watch(), reader:
                return self.step(batch.images, batch.targets)

        try:
            loss = first_run(self.built, twice)
        finally:
            hook.remove()
            kept.restore()
        gradients = self.step.gradients()
        self.step.clear()
        self.classes, self.required, self.operations = classes[-1], reader.read, reader.count
        self.state = State(self.built.module, self.training, [name.removeprefix("grad.") for name, _ in gradients])
        made = [("loss", loss), *gradients, *self.state.tensors().items()]
        self.outputs = self.every_output = [Spec.of(name, tensor) for name, tensor in made]
        self.inputs = self._specs(self.built.order.batch)
        self.checkpoint_length = len(self.state.save())

    def _specs(self, size: int) -> list[Spec]:
        groups = len(self.training.groups)
        return [
            Spec("images", torch.float32, (size, *self.built.input_sizes[1:])),
            Spec("targets", torch.int64, (size,)),
            *(
                Spec(f"hyper.{name}", torch.float64, (extent,))
                for name, extent in zip(HYPER, (groups, groups, 1, 1), strict=True)
            ),
        ]

    def _batch(self, size: int) -> Batch:
        if size not in self._batches:
            images, targets = (
                torch.zeros(spec.sizes, dtype=spec.dtype, device=self.built.device) for spec in self._specs(size)[:2]
            )
            self._batches[size] = Batch(images, targets)
        return self._batches[size]

    # Banks.

    def _place(self, memory: Memory, bank: wire.Bank, path: str, hyper_too: bool = True) -> InputBank:
        """Find the inputs of a bank. Its images say how large the batch is."""
        sizes = next((list(placed.spec.sizes) for placed in bank.tensors if placed.spec.name == "images"), [])
        size = sizes[0] if len(sizes) == 4 else self.built.order.batch
        if size == 0:
            raise ProblemError(Problem("EMPTY_BATCH", "a step needs an image", f"{path}/images"))
        placed = banks.place(memory, bank, self._specs(size)[: None if hyper_too else 2], path)
        problems = cells.check_shape(self.built.cell, self.built.order.imgsz, size)
        if problems:
            raise ProblemError([dataclasses.replace(problem, path=f"{path}/images") for problem in problems])
        images, targets, *hyper = placed
        return InputBank(images, targets, dict(zip(HYPER, hyper, strict=False)))

    def _place_outputs(self, memory: Memory, bank: wire.Bank, path: str) -> list[tuple[str, torch.Tensor]]:
        listed = {tensor.spec.name for tensor in bank.tensors}
        specs = [spec for spec in self.outputs if spec.name in listed]
        return [(spec.name, tensor) for spec, tensor in zip(specs, banks.place(memory, bank, specs, path), strict=True)]

    def _check_targets(self, targets: torch.Tensor) -> None:
        wrong = ((targets < 0) | (targets >= self.classes)) & (targets != IGNORED)
        problems = [
            Problem(
                "LABEL_OUT_OF_RANGE", f"class {label}, the model has classes 0 to {self.classes - 1}", f"targets[{index}]"
            )
            for index, label in enumerate(targets.tolist())
            if wrong[index]
        ]
        if problems:
            raise ProblemError(problems)

    def _read(self, bank: InputBank) -> Batch:
        self._check_targets(bank.targets)
        batch = self._batch(bank.images.shape[0])
        batch.images.copy_(bank.images)
        batch.targets.copy_(bank.targets)
        return batch

    # Calls.

    def record(self, memory: Memory, bank: wire.Bank, named: recorder.Named) -> recorder.Taken:
        """Record forward, loss and backward. The optimizer is not run; its settings go into the header."""
        hyper_too = any(placed.spec.name.startswith("hyper.") for placed in bank.tensors)
        batch = self._read(self._place(memory, bank, "inputs", hyper_too))
        named = dataclasses.replace(named, settings=[*named.settings, *self.training.settings()])
        kept, before = Snapshot(self.built.module, self.built.device), self._running.picture(self.built)
        try:
            with self._running.watch():
                taken = train_recorder.record(self.step, batch.images, batch.targets, named)
            self._running.check()
            batch.traces.check(before, self._running.picture(self.built, before), taken.data, taken.weights)
        finally:
            kept.restore()
            self.step.clear()
        return taken

    def load(self, weights_file: bytes, checkpoint: bytes) -> None:
        """Start a run: from weights, or where a checkpoint left off. Nothing changes if anything is wrong."""
        checked = self.state.check(checkpoint, self.required) if checkpoint else None
        if weights_file or checked is None:
            self.built.load(weights.decode(weights_file), self.required)
        self.state.restart()
        if checked is not None:
            self.state.restore(checked)
        self.wait()

    def prepare(self, memory: Memory, request: wire.PrepareRequest) -> None:
        """Resolve the banks, and try every batch size that is new or capture it. No state moves."""
        inputs = [self._place(memory, bank, f"inputs[{index}]") for index, bank in enumerate(request.inputs)]
        outputs = [self._place_outputs(memory, bank, f"outputs[{index}]") for index, bank in enumerate(request.outputs)]
        self.release()
        self.profile.verify()
        sizes = {bank.images.shape[0] for bank in inputs}
        self._batches = {size: self._batch(size) for size in sorted(sizes)}
        kept = Snapshot(self.built.module, self.built.device)
        try:
            for batch in self._batches.values():
                self._try(batch, capture=request.cuda_graph)
        finally:
            kept.restore()
            self.step.clear()
        self._input_banks, self._output_banks = inputs, outputs

    def _try(self, batch: Batch, capture: bool) -> None:
        batch.images.zero_()
        batch.targets.zero_()

        def whole() -> dict[str, torch.Tensor]:
            return {"loss": self.step(batch.images, batch.targets), **dict(self.step.gradients())}

        size = batch.images.shape[0]
        try:
            if capture:
                batch.graph = graphs.Graph(whole)
            elif size not in self._tried:
                whole()
        except ValueError as error:  # statistics over one value, say
            what = f"{self.built.cell.family} cannot train on a batch of {size}: {error}"
            raise ProblemError(Problem("BAD_BATCH", what, "inputs")) from error
        self._tried.add(size)

    def give(self, input_bank: int) -> None:
        """Copy a bank's inputs to the device. Labels are checked: PyTorch's loss stops the GPU where one is out of range."""
        bank = self._input_banks[input_bank]
        self._given = self._read(bank), bank.read_hyper()

    def run(self) -> None:
        """Run one whole training step."""
        assert self._given is not None
        batch, hyper = self._given
        if batch.graph is not None:
            self._replay(batch.graph)
            self.stats.replays += 1
            self.stats.launches += batch.graph.nodes
        else:
            self._loss = self.step(batch.images, batch.targets)
            self.stats.eager_steps += 1
            self.stats.launches += self.operations
        self.training.update(hyper)
        self.state.steps += 1

    def _replay(self, graph: graphs.Graph) -> None:
        graph.replay()
        made = dict(graph.outputs)
        self._loss = made["loss"]
        self.step.adopt(made)

    def take(self, output_bank: int) -> None:
        """Copy what the bank lists of loss, gradients and state."""
        made = {"loss": self._loss, **dict(self.step.gradients()), **self.state.tensors()}
        for name, target in self._output_banks[output_bank]:
            target.copy_(made[name])

    def watch(self, watcher: Observer) -> None:
        """Run forward, loss and backward. The optimizer is not run, and buffers are set back."""
        assert self._given is not None
        batch, _ = self._given
        kept = Snapshot(self.built.module, self.built.device)
        try:
            self.step.clear()
            with watcher:
                self.step.backward(self.step.forward(batch.images, batch.targets))
        finally:
            kept.restore()
            self.step.clear()

    def captured(self) -> list[graphs.Graph]:
        """Give a graph for each batch size."""
        return [batch.graph for batch in self._batches.values() if batch.graph is not None]

    def poison(self) -> None:
        """Write NaN bytes over the loss and gradients of every graph. State is what a step needs: it stays."""
        for batch in self._batches.values():
            if batch.graph is not None:
                batch.graph.poison([batch.images, batch.targets])

    def release(self) -> None:
        """Drop the graphs. Gradients that lie in their memory go with them."""
        self.step.clear()
        self._loss = torch.empty(())
        for batch in self._batches.values():
            if batch.graph is not None:
                batch.graph.release()
            batch.graph = None

    def checkpoint(self) -> bytes:
        """Give the state as it is now."""
        self.wait()
        return self.state.save()
