"""Training as LibreYOLO's own trainer of a family does it: its loss, parameter groups, optimizer and moving average.

The trainer object is LibreYOLO's; only its loop over a data set is left out. What it would set between steps (learning
rates by its schedule, the average's decay) is given from outside.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from samebits_reference.families import Built
from samebits_wire.problems import Kind, Problem, ProblemError

OPTIMIZER = "sgd"
_TASKS = ("classify",)
_PRECISIONS = ("fp32", "bf16", "fp64")  # fp16 scales its loss, which moves state of its own


@dataclasses.dataclass(frozen=True)
class Hyper:
    """What may change from step to step. The first two have a number for each parameter group."""

    lr: Sequence[float]
    weight_decay: Sequence[float]
    momentum: float
    ema_decay: float


class TrainStep:
    """Gradients of one batch. As a whole it is what is captured; its parts are what is recorded."""

    def __init__(self, built: Built, loss: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
        self.built = built
        self._loss = loss
        self._parameters = [(name, tensor) for name, tensor in built.module.named_parameters() if tensor.requires_grad]

    def __call__(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Run a whole step. Gradients are left where `gradients` finds them."""
        self.clear()
        loss = self.forward(images, targets)
        self.backward(loss)
        # No reference to the step's autograd graph may outlive it: it would tie gradients to this step's stream.
        return loss.detach()

    def clear(self) -> None:
        """Let gradients go; the next backward leaves its own instead of adding to them."""
        for _, tensor in self._parameters:
            tensor.grad = None

    def forward(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Give the loss."""
        # Without autocast's cache, as graphs must be captured: a weight used twice then adds its gradients in float32.
        with torch.enable_grad(), self.built.autocast(cache=False):
            loss: torch.Tensor = self._loss(images.double() if self.built.double else images, targets)["total_loss"]
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        """Leave a gradient at every parameter that has part in the loss."""
        loss.backward()

    def adopt(self, made: Mapping[str, torch.Tensor]) -> None:
        """Take the gradients that a replay wrote for those of the last step."""
        for name, tensor in self._parameters:
            tensor.grad = made.get(f"grad.{name}")

    def gradients(self) -> list[tuple[str, torch.Tensor]]:
        """Give what the last step left, in the order of parameters; those without part in the loss have none."""
        return [(f"grad.{name}", tensor.grad) for name, tensor in self._parameters if tensor.grad is not None]


class Training:
    """A family with its optimizer and the moving average of its weights."""

    def __init__(self, built: Built) -> None:
        trainer = _trainer(built)
        module = built.module.train()
        self.optimizer: torch.optim.Optimizer = trainer._setup_optimizer()
        self.average = _average(trainer)
        self.step = TrainStep(built, trainer.on_forward)
        self._names = {id(tensor): name for name, tensor in module.named_parameters()}
        self._module = module

    @property
    def groups(self) -> list[list[str]]:
        """Give the names of each parameter group, in the optimizer's order."""
        return [[self._names[id(tensor)] for tensor in group["params"]] for group in self.optimizer.param_groups]

    def settings(self) -> Iterator[tuple[str, str]]:
        """Give what a recording says of the optimizer, so that an engine needs nothing but the recording."""
        first = self.optimizer.param_groups[0]
        yield "train.dampening", str(first["dampening"])
        yield "train.ema", "true"
        yield "train.groups", json.dumps(self.groups, separators=(",", ":"))
        yield "train.nesterov", "true" if first["nesterov"] else "false"
        yield "train.optimizer", OPTIMIZER

    def update(self, hyper: Hyper) -> None:
        """Step the optimizer with the gradients at hand, then the average."""
        groups = self.optimizer.param_groups
        for group, lr, weight_decay in zip(groups, hyper.lr, hyper.weight_decay, strict=True):
            group.update(lr=lr, weight_decay=weight_decay, momentum=hyper.momentum)
        self.optimizer.step()
        self.average.decay = lambda _updates: hyper.ema_decay
        self.average.update(self._module)


def _trainer(built: Built) -> Any:
    """Give LibreYOLO's trainer of the family around the module, as far as steps need it: no data, no files."""
    cell = built.cell
    if cell.task not in _TASKS:
        raise _refusal(f"{cell.family} {cell.task} cannot be trained here yet", f"tasks: {', '.join(_TASKS)}", "task")
    if built.order.precision not in _PRECISIONS:
        detail = f"precisions: {', '.join(_PRECISIONS)}"
        raise _refusal(f"training in {built.order.precision} is not here yet", detail, "precision")
    try:
        found = importlib.import_module(f"libreyolo.models.{cell.family}.trainer")
        base = importlib.import_module("libreyolo.training.trainer").BaseTrainer
    except ImportError as error:
        raise _refusal(f"LibreYOLO has no trainer of {cell.family}: {error}", "", "family") from error
    trainer_class: Any = next(
        of
        for _, of in inspect.getmembers(found, inspect.isclass)
        if issubclass(of, base) and of.__module__ == found.__name__
    )
    trainer: Any = object.__new__(trainer_class)
    trainer.config = trainer_class._config_class().from_kwargs(size=built.order.size, optimizer=OPTIMIZER)
    trainer.model = built.module
    return trainer


def _average(trainer: Any) -> Any:
    ema = importlib.import_module("libreyolo.training.ema")
    config = trainer.config
    return ema.ModelEMA(trainer.model, decay=config.ema_decay, tau=getattr(config, "ema_tau", 2000))


def _refusal(summary: str, detail: str, path: str) -> ProblemError:
    return ProblemError(Problem("UNKNOWN_MODE", summary, path, detail), Kind.UNIMPLEMENTED)
