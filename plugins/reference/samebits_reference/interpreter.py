"""Runs recordings in PyTorch: calls every operation by its name, on memory as the recording lays it out."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference import decode
from samebits_reference.banks import Spec
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.storages import Storages, same_geometry
from samebits_wire import recording_pb2 as pb
from samebits_wire.problems import Problem, ProblemError

_GIVEN = (pb.ROLE_INPUT, pb.ROLE_PARAMETER, pb.ROLE_BUFFER, pb.ROLE_CONSTANT)


class Interpreter:
    """A recording on one device. Inputs and weights keep their addresses, so that a step can be captured.

    What an operation makes is what PyTorch made of it: the recording's dtypes, sizes, strides and aliasing must come out,
    or the operation is refused. Only where the recording is of another kind of device may strides differ; results are then
    moved to where the recording has them.
    """

    def __init__(self, recording: pb.Recording, device: torch.device, *, double: bool = False) -> None:
        self.recording, self._device, self._double = recording, device, double
        self._at_home = recording.header.device_type == device.type
        self._storages = Storages(recording, device, double=double)
        self._storages.check()
        self._given = [index for index, storage in enumerate(recording.storages) if storage.role in _GIVEN]
        for index in self._given:
            self._storages.allocate(index)
        self._tensors: dict[int, torch.Tensor] = {}  # by value: those of this run
        self._lasting = self._fixed_tensors()
        self._ends = self._find_ends()
        self._read = self._find_read()
        self.inputs = [
            self._spec(named, decode.dtype) for named in recording.inputs
        ]  # as they are given, not as they are used
        self.outputs = [self._spec(named, self._storages.dtype) for named in recording.outputs]

    # Memory.

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Copy parameters, buffers and constants. All that is missing or of another kind is refused at once."""
        problems = []
        for index in self._given:
            storage = self.recording.storages[index]
            if storage.role == pb.ROLE_INPUT:
                continue
            path, given = f"weights/{storage.name}", weights.get(storage.name)
            whole = self._storages.whole(index)
            if given is None:
                problems.append(Problem("MISSING_WEIGHT", "the recording reads it and the file lacks it", path))
            elif given.dtype != decode.dtype(storage.dtype) or given.numel() != whole.numel():
                what = f"it is {given.numel()} of {given.dtype}, not {whole.numel()} of {decode.dtype(storage.dtype)}"
                problems.append(Problem("WRONG_WEIGHT", what, path))
            else:
                whole.copy_(given.flatten())
        if problems:
            raise ProblemError(problems)

    def input(self, index: int) -> torch.Tensor:
        """Give the place of an input, to be written before a step."""
        return self._lasting[self.recording.inputs[index].value]

    def _fixed_tensors(self) -> dict[int, torch.Tensor]:
        given = frozenset(self._given)
        return {
            index: self._storages.tensor(value)
            for index, value in enumerate(self.recording.values)
            if value.storage in given
        }

    def _find_ends(self) -> list[tuple[list[int], list[int]]]:
        """Give, by operation, the values and the storages that nothing reads after it."""
        recording = self.recording
        forever = len(recording.operations)
        values, storages = {}, dict.fromkeys(self._given, forever)
        for at, operation in enumerate(recording.operations):
            for index in _values([*operation.arguments, *operation.results]):
                values[index] = at
                storages[recording.values[index].storage] = max(at, storages.get(recording.values[index].storage, 0))
        for named in recording.outputs:
            values[named.value] = storages[recording.values[named.value].storage] = forever
        ends: list[tuple[list[int], list[int]]] = [([], []) for _ in recording.operations]
        for index, at in values.items():
            if at < forever:
                ends[at][0].append(index)
        for index, at in storages.items():
            if at < forever:
                ends[at][1].append(index)
        return ends

    def _find_read(self) -> set[int]:
        """Give the storages that an operation or an output reads."""
        values = [index for operation in self.recording.operations for index in _values(operation.arguments)]
        values += [named.value for named in self.recording.outputs]
        return {self.recording.values[index].storage for index in values}

    def _spec(self, named: pb.NamedValue, dtype: Callable[[int], torch.dtype]) -> Spec:
        value = self.recording.values[named.value]
        return Spec(named.name, dtype(value.dtype), tuple(value.sizes))

    # Steps.

    def run(self) -> list[torch.Tensor]:
        """Run one step and give its outputs in their order. They are its own memory: the next step makes others."""
        self._tensors = {}
        with torch.no_grad(), self._default_dtype():
            for at, operation in enumerate(self.recording.operations):
                try:
                    self._call(operation)
                except ProblemError:
                    raise
                except _FAILURES as error:
                    if is_out_of_memory(error):
                        raise
                    raise ProblemError(_failed(at, operation, error)) from error
                self._forget(at)
        return self._finish()

    def rehearse(self) -> None:
        """Run a step, and refuse at once every operation that fails. What depends on such a one is left out."""
        problems: list[Problem] = []
        missing: set[int] = set()  # storages that nobody made
        values = self.recording.values
        self._tensors = {}
        with torch.no_grad(), self._default_dtype():
            for at, operation in enumerate(self.recording.operations):
                if missing.isdisjoint(values[index].storage for index in _values(operation.arguments)):
                    try:
                        self._call(operation)
                        self._forget(at)
                        continue
                    except ProblemError as error:
                        problems += (Problem(p.reason, p.summary, _path(at), p.detail) for p in error.problems)
                    except _FAILURES as error:
                        if is_out_of_memory(error):
                            raise
                        if "ZeroDivisionError" not in str(error):  # which says something of zeros alone
                            problems.append(_failed(at, operation, error))
                missing.update(values[index].storage for index in _values(operation.results))
        if problems:
            raise ProblemError(problems)
        self._tensors = {}
        self._drop_made()

    @contextlib.contextmanager
    def _default_dtype(self) -> Iterator[None]:
        """Whole numbers become floats of the default dtype: in double precision that is another one."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64 if self._double else torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def _finish(self) -> list[torch.Tensor]:
        outputs = [self._tensor(named.value) for named in self.recording.outputs]
        self._tensors = {}
        self._drop_made()
        return outputs

    def _drop_made(self) -> None:
        for index, storage in enumerate(self.recording.storages):
            if storage.role not in _GIVEN:
                self._storages.drop(index)

    def _forget(self, at: int) -> None:
        values, storages = self._ends[at]
        for index in values:
            self._tensors.pop(index, None)
        for index in storages:
            self._storages.drop(index)

    def _call(self, operation: pb.Operation) -> None:
        try:
            function = decode.operation(operation.name)
        except (AttributeError, ImportError):
            problem = Problem("UNKNOWN_OPERATION", f"this PyTorch has no {operation.name}")
            raise ProblemError(problem) from None
        formals = function._schema.arguments
        if [formal.name for formal in formals] != [given.name for given in operation.arguments]:
            what = f"{operation.name} takes {[formal.name for formal in formals]} in this PyTorch"
            raise ProblemError(Problem("OTHER_SCHEMA", what))
        positional, by_name = [], {}
        for given, formal in zip(operation.arguments, formals, strict=True):
            if formal.kwarg_only:
                by_name[given.name] = self._argument(given)
            else:
                positional.append(self._argument(given))
        made = function(*positional, **by_name)
        results = (made,) if len(function._schema.returns) == 1 else tuple(made or ())
        if len(results) != len(operation.results):
            raise _changed(operation, f"{len(results)} results, recorded were {len(operation.results)}")
        for recorded, result in zip(operation.results, results, strict=True):
            self._keep(operation, recorded, result)

    def _argument(self, given: pb.Argument) -> Any:
        match given.WhichOneof("kind"):
            case "none":
                return None
            case "value":
                return self._tensor(given.value)
            case "list":
                return [self._argument(item) for item in given.list.items]
            case "dtype":
                return self._storages.dtype(given.dtype)
            case "memory_format":
                return decode.memory_format(given.memory_format)
            case "layout":
                return torch.strided
            case "device":
                # A recording of a GPU may make a number on the CPU: that stays there. Elsewhere there is one device.
                there = given.device == "cpu" and self._at_home
                return torch.device("cpu") if there else self._device
            case "boolean" | "integer" | "real" | "text" as kind:
                return getattr(given, kind)
            case kind:
                raise ProblemError(Problem("UNSUPPORTED_ARGUMENT", f"argument {given.name} is of kind {kind}"))

    def _tensor(self, index: int) -> torch.Tensor:
        found = self._tensors.get(index)
        if found is None:
            found = self._lasting.get(index)
        return self._storages.tensor(self.recording.values[index]) if found is None else found

    def _keep(self, operation: pb.Operation, recorded: pb.Argument, result: Any) -> None:
        """Hold what an operation gave against the recording, and remember it."""
        kind = recorded.WhichOneof("kind")
        if kind == "list" and isinstance(result, list | tuple) and len(result) == len(recorded.list.items):
            for item, part in zip(recorded.list.items, result, strict=True):
                self._keep(operation, item, part)
            return
        if kind == "none" and result is None:
            return
        if kind != "value" or not isinstance(result, torch.Tensor):
            raise _changed(operation, f"a {type(result).__name__}, recorded was a {kind}")
        value = self.recording.values[recorded.value]
        if not self._at_home and value.storage not in self._read:
            return  # what nobody reads may be something else on another kind of device: statistics of a batch norm
        dtype = self._storages.dtype(value.dtype)
        if result.dtype != dtype or tuple(result.shape) != tuple(value.sizes):
            raise _changed(operation, f"{result.dtype} {list(result.shape)}, recorded was {dtype} {list(value.sizes)}")
        self._tensors[recorded.value] = self._place(operation, value, result)

    def _place(self, operation: pb.Operation, value: pb.Value, result: torch.Tensor) -> torch.Tensor:
        bound = self._storages.bound(value.storage)
        if bound is not None and result.numel() and bound.data_ptr() != result.untyped_storage().data_ptr():
            raise _changed(operation, "memory of its own, recorded was a tensor on memory that was there before")
        if same_geometry(result, value):
            if bound is None:
                self._storages.bind(value.storage, result)
            return result
        if self._at_home or bound is not None:
            lies = f"strides {list(result.stride())}, offset {result.storage_offset()}"
            raise _changed(operation, f"{lies}, recorded were {list(value.strides)}, {value.offset}")
        with _disable_current_modes():
            self._storages.allocate(value.storage)
            return self._storages.tensor(value).copy_(result)


_FAILURES = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AssertionError, NotImplementedError)


def _values(arguments: Any) -> list[int]:
    out: list[int] = []
    for argument in arguments:
        kind = argument.WhichOneof("kind")
        if kind == "value":
            out.append(argument.value)
        elif kind == "list":
            out += _values(argument.list.items)
    return out


def _path(at: int) -> str:
    return f"operations[{at}]"


def _changed(operation: pb.Operation, gave: str) -> ProblemError:
    return ProblemError(Problem("RESULT_CHANGED", f"{operation.name} gave {gave}"))


def _failed(at: int, operation: pb.Operation, error: Exception) -> Problem:
    why = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return Problem("OPERATION_FAILED", f"{operation.name}: {textwrap.shorten(why, 200, placeholder=' …')}", _path(at))
