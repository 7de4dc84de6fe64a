"""Weights from a file: a checkpoint that the family's own loader reads, or a safetensors file."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pathlib
import struct
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import safetensors.torch
import torch

from samebits_reference import weights
from samebits_reference.cells import Cell
from samebits_reference.exhaustion import is_out_of_memory
from samebits_wire.problems import Problem, ProblemError

_PATH = "weights_file"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A file that was read, without running anything that stands in it."""

    path: pathlib.Path
    content: Mapping[str, Any]
    plain: bool  # safetensors: names and tensors, nothing else

    @property
    def size(self) -> str:
        """Give the size that the file says it is of, if it does."""
        return str(self.content["size"]) if not self.plain and isinstance(self.content.get("size"), str) else ""

    def check(self, cell: Cell) -> None:
        """Refuse what says that it is of another family or task."""
        if self.plain:
            return
        for key, ours in (("model_family", cell.package), ("task", cell.task)):
            theirs = self.content.get(key)
            if isinstance(theirs, str) and theirs and theirs != ours:
                raise ProblemError(
                    Problem("OTHER_WEIGHTS", f"{self.path.name} is of the {key} {theirs!r}, not {ours!r}", _PATH)
                )

    def fits(self, module: torch.nn.Module) -> bool:
        """Say whether these are a model's own tensors by name and shape, as `parity record` writes them."""
        have = weights.state(module)
        given = {name: tensor for name, tensor in self.content.items() if not weights.is_constant(name)}
        return self.plain and all(name in have and have[name].shape == tensor.shape for name, tensor in given.items())


def read(path: str, cell: Cell) -> Checkpoint:
    """Read a file of weights for a cell."""
    checkpoint = _read(path)
    checkpoint.check(cell)
    return checkpoint


def _read(path: str) -> Checkpoint:
    file = pathlib.Path(path)
    try:
        with file.open("rb") as opened:
            plain = opened.read(9)[8:] == b"{"
    except OSError as error:
        raise ProblemError(Problem("BAD_WEIGHTS_FILE", f"{path}: {error.strerror}", _PATH)) from error
    try:
        if plain:
            return Checkpoint(file, safetensors.torch.load_file(file), plain)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # bytes that are no checkpoint lead the unpickler anywhere
        if is_out_of_memory(error):
            raise
        detail = "there are safetensors files, and checkpoints of torch.save that hold data alone"
        what = f"{file.name} is no file of weights: {_reading(error)}"
        raise ProblemError(Problem("BAD_WEIGHTS_FILE", what, _PATH, detail)) from error
    if not isinstance(content, Mapping):
        raise ProblemError(
            Problem("BAD_WEIGHTS_FILE", f"{file.name} holds a {type(content).__name__}, no tensors by name", _PATH)
        )
    return Checkpoint(file, content, plain)


def construct(model_class: Any, cell: Cell, size: str, checkpoint: Checkpoint) -> Any:
    """Have a family's own loader read a checkpoint, on the CPU."""
    try:
        with _as_torch_file(checkpoint) as path, _no_missing_weights():
            return model_class(model_path=str(path), size=size, task=cell.task, device="cpu")
    except ProblemError:
        raise
    except Exception as error:  # each family's loader has its own
        if is_out_of_memory(error):
            raise
        what = f"{cell.family} {size} does not take {checkpoint.path.name}: {first_line(error)}"
        raise ProblemError(Problem("WRONG_WEIGHTS", what, _PATH, _more(error))) from error


@contextlib.contextmanager
def _as_torch_file(checkpoint: Checkpoint) -> Iterator[pathlib.Path]:
    """Give a file that torch.load reads: that is what the loaders of families know."""
    if not checkpoint.plain:
        yield checkpoint.path.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{checkpoint.path.stem}.pt"
        torch.save(dict(checkpoint.content), path)
        yield path


@contextlib.contextmanager
def _no_missing_weights() -> Iterator[None]:
    """Refuse what LibreYOLO only warns of: weights that the file lacks would stay random."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Non-strict load" in record.getMessage():
                said.append(record.getMessage())

    listener = Listener(logging.WARNING)
    logger = logging.getLogger("libreyolo")
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
    if said:
        raise ProblemError(Problem("WRONG_WEIGHTS", said[0], _PATH))


def first_line(error: BaseException) -> str:
    """Give what an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _reading(error: Exception) -> str:
    """Give what torch says in its first sentence, and not its advice to read without weights_only."""
    if isinstance(error, LookupError | EOFError | UnicodeError | struct.error):
        return "it is torn, or something else"
    _, _, inner = str(error).partition("WeightsUnpickler error: ")
    return (inner.strip().splitlines() or [first_line(error)])[0].partition(". ")[0]


def _more(error: BaseException) -> str:
    return " ".join(line.strip() for line in str(error).strip().splitlines()[1:4])
