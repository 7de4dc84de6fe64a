"""Checks the banks of inputs and outputs that a host lays out, and gives the tensors that lie there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from samebits_reference import encode
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory, dtype_name
from samebits_wire.problems import Problem, ProblemError


@dataclasses.dataclass(frozen=True)
class Spec:
    """Name, dtype and sizes of a tensor that goes in or comes out."""

    name: str
    dtype: torch.dtype
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor) -> Spec:
        """Give the spec of a tensor."""
        return cls(name, tensor.dtype, tuple(tensor.shape))

    def message(self) -> wire.TensorSpec:
        """Give the spec as the wire has it."""
        return wire.TensorSpec(name=self.name, dtype=encode.dtype(self.dtype), sizes=self.sizes)


def place(memory: Memory, bank: wire.Bank, specs: Sequence[Spec], path: str) -> list[torch.Tensor]:
    """Give the tensors of a bank in the order of specs. Everything wrong with the bank is refused at once."""
    placed = {tensor.spec.name: tensor for tensor in bank.tensors}
    problems: list[Problem] = []
    if len(placed) != len(bank.tensors):
        problems.append(Problem("DUPLICATE_TENSOR", "a name comes twice", path))
    wanted = {spec.name for spec in specs}
    for name in placed.keys() - wanted:
        problems.append(Problem("UNEXPECTED_TENSOR", f"there is no tensor {name!r}", f"{path}/{name}"))
    tensors = []
    for spec in specs:
        where = f"{path}/{spec.name}"
        if spec.name not in placed:
            problems.append(Problem("MISSING_TENSOR", "the bank lacks it", where))
            continue
        given = placed[spec.name].spec
        wrong = len(problems)
        if given.dtype != encode.dtype(spec.dtype):
            what = f"it is {_dtype_text(given.dtype)}, not {dtype_name(spec.dtype)}"
            problems.append(Problem("WRONG_DTYPE", what, where))
        if tuple(given.sizes) != spec.sizes:
            problems.append(Problem("WRONG_SHAPE", f"it is {list(given.sizes)}, not {list(spec.sizes)}", where))
        if len(problems) > wrong:
            continue
        try:
            tensors.append(memory.placed(placed[spec.name]))
        except ProblemError as error:
            problems += (dataclasses.replace(problem, path=where) for problem in error.problems)
    if problems:
        raise ProblemError(problems)
    return tensors


def _dtype_text(number: int) -> str:
    try:
        return dtype_name(number)
    except ProblemError:
        return f"dtype {number}"
