"""Builds a family from its name, size, task and seed: on the CPU, so that weights are equal on every machine."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from samebits_reference import cells, season, weights
from samebits_reference.cells import Cell
from samebits_wire.problems import Kind, Problem, ProblemError

PRECISIONS = ("fp32", "bf16", "fp16", "fp64")
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclasses.dataclass(frozen=True)
class Order:
    """What to build."""

    family: str
    size: str = ""  # empty: the size of the parity list
    task: str = ""  # empty: the family's first task
    seed: int = 0
    precision: str = "fp32"
    device: str = "cpu"
    imgsz: int = 0  # 0: the family's own
    batch: int = 1
    fresh_weights: bool = False


@dataclasses.dataclass
class Built:
    """A family that is ready to run."""

    cell: Cell
    order: Order  # with nothing left open
    device: torch.device
    module: torch.nn.Module
    seasoning: str
    forward: Callable[[torch.Tensor], Any]
    dtypes: Mapping[str, torch.dtype]  # of the weights as they are handed around, also where the module runs in double

    @property
    def double(self) -> bool:
        """Say whether the module was turned into double precision."""
        return self.order.precision == "fp64"

    def weights(self) -> dict[str, torch.Tensor]:
        """Give what parameters and buffers hold."""
        return {name: tensor.to(self.dtypes[name]) for name, tensor in weights.state(self.module).items()}

    def load(self, given: Mapping[str, torch.Tensor], required: Collection[str]) -> None:
        """Set parameters and buffers in place, each where it is."""
        weights.install(weights.state(self.module), given, self.dtypes, required)

    @property
    def input_sizes(self) -> tuple[int, int, int, int]:
        """Give the sizes of `images`."""
        return (self.order.batch, 3, self.order.imgsz, self.order.imgsz)

    def step(self, images: torch.Tensor) -> Any:
        """Run one eager step: the very code that is recorded, captured, traced and measured."""
        with torch.no_grad(), self.autocast():
            return self.forward(images.double() if self.double else images)

    def autocast(self, cache: bool = True) -> contextlib.AbstractContextManager[Any]:
        """Give the autocast of the precision. cache keeps casts of weights for further uses in the same step."""
        dtype = _AUTOCAST.get(self.order.precision)
        return torch.autocast(self.device.type, dtype, cache_enabled=cache) if dtype else contextlib.nullcontext()


@dataclasses.dataclass(frozen=True)
class Constructed:
    """A family as it is made, on the CPU and with no device touched."""

    asked: Order
    cell: Cell
    order: Order  # with nothing left open
    wrapper: Any
    seasoning: str


def build(order: Order, constructed: Constructed | None = None) -> Built:
    """Build a family. Everything wrong with the order is refused at once.

    What `construct` made of the same order is used up.
    """
    if constructed is None or constructed.asked != order:
        constructed = construct(order)
    order, wrapper = constructed.order, constructed.wrapper
    module: torch.nn.Module = wrapper.model
    dtypes = {name: tensor.dtype for name, tensor in weights.state(module).items()}
    if order.precision == "fp64":
        module.double()
    device = torch.device(order.device)
    module.to(device)
    wrapper.device = device
    return Built(constructed.cell, order, device, module, constructed.seasoning, wrapper._forward, dtypes)


def construct(asked: Order) -> Constructed:
    """Do what building has to do on the CPU, which takes most of its time."""
    cell = cells.find(asked.family, asked.task)
    device = named_device(asked.device)
    model_class = _load_class(cell)
    sizes = _sizes(model_class, cell.task)
    size = asked.size or cell.size
    problems = []
    if size not in sizes:
        detail = f"its sizes: {', '.join(sizes)}"
        problems.append(Problem("UNKNOWN_SIZE", f"{cell.family} {cell.task} has no size {size!r}", "size", detail))
    if asked.precision not in PRECISIONS:
        detail = f"known: {', '.join(PRECISIONS)}"
        problems.append(Problem("UNKNOWN_PRECISION", f"no precision {asked.precision!r}", "precision", detail))
    imgsz = asked.imgsz or cell.only or sizes.get(size, cell.native)
    problems += cells.check_shape(cell, imgsz, asked.batch)
    if problems:
        raise ProblemError(problems)

    order = dataclasses.replace(asked, size=size, task=cell.task, imgsz=imgsz, device=str(device))
    wrapper = _construct(model_class, cell, order)
    module: torch.nn.Module = wrapper.model.eval()
    seasoning = season.FRESH if order.fresh_weights else season.season(module, cell.family, order.seed)
    return Constructed(asked, cell, order, wrapper, seasoning)


def flatten(output: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Give the tensors of nested outputs with their names; what is no tensor is dropped."""
    if isinstance(output, torch.Tensor):
        yield name or "output", output
    elif isinstance(output, Mapping):
        for key in sorted(output, key=str):
            yield from flatten(output[key], f"{name}.{key}".lstrip("."))
    elif isinstance(output, list | tuple):
        for index, item in enumerate(output):
            yield from flatten(item, f"{name}.{index}".lstrip("."))


def _load_class(cell: Cell) -> Any:
    module, _, classname = cell.path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), classname)
    except ImportError as error:
        problem = Problem("FAMILY_UNAVAILABLE", f"{cell.family} cannot be imported: {error}", "family")
        raise ProblemError(problem, Kind.WRONG_ORDER) from error


def _sizes(model_class: Any, task: str) -> dict[str, int]:
    return dict(model_class.TASK_INPUT_SIZES.get(task) or model_class.INPUT_SIZES)


def _construct(model_class: Any, cell: Cell, order: Order) -> Any:
    """Construct without a network, as each family needs it."""
    torch.manual_seed(order.seed)
    random.seed(order.seed)
    np.random.seed(order.seed % 2**32)
    common = {"size": order.size, "task": order.task, "device": "cpu"}
    try:
        match cell.construct:
            case "scratch":
                return model_class._from_scratch(nb_classes=80, seed=order.seed, **common)
            case "empty-state":
                return model_class(model_path={}, **common)
            case "own-state":
                network = importlib.import_module(f"libreyolo.models.{cell.family}.nn")
                module = getattr(network, f"build_{cell.family}_model")(order.size)
                season.season(module, cell.family, order.seed)  # before the text embeddings are cached
                return model_class(model_path=module.state_dict(), **common)
            case _:
                return model_class(model_path=None, **common)
    except ImportError as error:
        problem = Problem("FAMILY_UNAVAILABLE", f"{cell.family} lacks a package: {error}", "family")
        raise ProblemError(problem, Kind.WRONG_ORDER) from error


def named_device(name: str) -> torch.device:
    """Find a device by the name that requests have."""
    if name in ("", "cpu"):
        return torch.device("cpu")
    kind, _, index = name.partition(":")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise ProblemError(Problem("UNKNOWN_DEVICE", f"{name!r} is no device", "device", "known: cpu, cuda:N"))
    if not torch.cuda.is_available():
        raise ProblemError(Problem("NO_CUDA", f"{name}: PyTorch sees no CUDA device here", "device"))
    number = int(index or "0")
    if number >= torch.cuda.device_count():
        have = f"there are {torch.cuda.device_count()}"
        raise ProblemError(Problem("NO_SUCH_DEVICE", f"there is no CUDA device {number}", "device", have))
    return torch.device("cuda", number)
