"""Builds a family from its name, size, task and seed: on the CPU, so that weights are equal on every machine."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch

from samebits_reference import builders, cells, checkpoints, own_paths, season, weights
from samebits_reference.cells import Cell
from samebits_reference.seams import SEAMS, Made
from samebits_wire.problems import Problem, ProblemError

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
    weights_file: str = ""  # empty: seeded


@dataclasses.dataclass
class Built:
    """A family that is ready to run."""

    cell: Cell
    order: Order  # with nothing left open
    device: torch.device
    module: torch.nn.Module
    seasoning: str
    forward: Callable[[torch.Tensor], Any]  # a cell's step: all of the family's forward, or its segment
    dtypes: Mapping[str, torch.dtype]  # of the weights as they are handed around, also where the module runs in double
    family: Any = None  # what LibreYOLO made
    given: Mapping[str, torch.Tensor] | None = None  # weights to load once it is known which are read

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
        batch = self.family.patches if isinstance(self.family, own_paths.Tower) else self.order.batch
        return (batch, 3, self.order.imgsz, self.order.imgsz)

    @property
    def keys(self) -> dict[str, torch.Tensor]:
        """Give what the next step reads on the host beside its images. A recording holds for one content of it only."""
        return self.family.keys if isinstance(self.family, own_paths.Tower) else {}

    def step(self, images: torch.Tensor) -> Any:
        """Run one eager step: the very code that is recorded, captured, traced and measured."""
        with torch.no_grad(), self.autocast():
            return self.forward(images.double() if self.double else images)

    @property
    def has_rest(self) -> bool:
        """Say whether a part of the family's forward comes behind the step."""
        return self.cell.family in SEAMS

    def whole(self, images: torch.Tensor) -> Any:
        """Run all of the family's forward, not the step alone, with its generators seeded anew."""
        seam = SEAMS[self.cell.family]
        builders.seed_generators(self.order.seed)
        with torch.no_grad(), self.autocast():
            return seam.whole(self.family, images)

    def rest(self, images: torch.Tensor, made: Made) -> Any:
        """Run what comes behind the step, on what a step made, with generators seeded as for the whole."""
        seam = SEAMS[self.cell.family]
        builders.seed_generators(self.order.seed)
        with torch.no_grad(), self.autocast():
            return seam.rest(self.family, images, made)

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
    family: Any  # what LibreYOLO made
    seasoning: str
    given: Mapping[str, torch.Tensor] | None = None  # weights that a first run must show to be all it reads


def build(order: Order, constructed: Constructed | None = None) -> Built:
    """Build a family. Everything wrong with the order is refused at once.

    What `construct` made of the same order is used up.
    """
    if constructed is None or constructed.asked != order:
        constructed = construct(order)
    order, family = constructed.order, constructed.family
    module: torch.nn.Module = family.model
    dtypes = {name: tensor.dtype for name, tensor in weights.state(module).items()}
    if order.precision == "fp64":
        module.double()
    device = torch.device(order.device)
    module.to(device)
    family.device = device
    # What a family keeps beside its module, as the embeddings of class names: a copy from the CPU in every step could not
    # be captured.
    for name, kept in vars(family).items():
        if isinstance(kept, torch.Tensor):
            setattr(family, name, kept.to(device))
    seam = SEAMS.get(constructed.cell.family)
    forward = functools.partial(seam.segment, family) if seam else family._forward
    return Built(constructed.cell, order, device, module, constructed.seasoning, forward, dtypes, family, constructed.given)


def construct(asked: Order) -> Constructed:
    """Do what building has to do on the CPU, which takes most of its time."""
    cell = cells.find(asked.family, asked.task)
    device = named_device(asked.device)
    model_class = builders.load_class(cell)
    sizes = builders.sizes(model_class, cell)
    checkpoint = checkpoints.read(asked.weights_file, cell) if asked.weights_file else None
    size = asked.size or (checkpoint.size if checkpoint else "") or cell.size
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
    if checkpoint is not None:
        family, given = _from_file(model_class, cell, order, checkpoint)
        family.model.eval()
        # A recording holds no weights: that of a step is the same for all, and found among certificates.
        return Constructed(asked, cell, order, family, season.words(cell.package), given)
    family = builders.construct(model_class, cell, size, order.batch, order.seed)
    module: torch.nn.Module = family.model.eval()
    seasoning = season.FRESH if order.fresh_weights else season.season(module, cell.package, order.seed)
    return Constructed(asked, cell, order, family, seasoning)


def _from_file(
    model_class: Any, cell: Cell, order: Order, checkpoint: checkpoints.Checkpoint
) -> tuple[Any, Mapping[str, torch.Tensor] | None]:
    # Text embeddings are made of weights while an own-state family is constructed.
    if checkpoint.plain and cell.construct != "own-state":
        family = builders.construct(model_class, cell, order.size, order.batch, order.seed)
        if checkpoint.fits(family.model):
            return family, checkpoint.content
    return checkpoints.construct(model_class, cell, order.size, checkpoint), None


def flatten(output: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Give the tensors of nested outputs with their names; what is no tensor is dropped."""
    for at, leaf in _leaves(output, name):
        if isinstance(leaf, torch.Tensor):
            yield at or "output", leaf


def leftovers(output: Any) -> Iterator[tuple[str, Any]]:
    """Give what `flatten` drops, with its names."""
    for at, leaf in _leaves(output, ""):
        if not isinstance(leaf, torch.Tensor):
            yield at or "output", leaf


def _leaves(output: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(output, Mapping):
        for key in sorted(output, key=str):
            yield from _leaves(output[key], f"{name}.{key}".lstrip("."))
    elif isinstance(output, list | tuple):
        for index, item in enumerate(output):
            yield from _leaves(item, f"{name}.{index}".lstrip("."))
    else:
        yield name, output


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
