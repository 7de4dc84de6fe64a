"""The arrays of one step, checked and turned into addresses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ._arrays import Checker, Kind, TensorSpec, address_of, empty, in_order, kind_of
from ._errors import InputError, Problem


class Inputs:
    """The inputs of a step: all of one kind, on one device."""

    def __init__(self, given: Sequence[Any] | Mapping[str, Any], wanted: tuple[TensorSpec, ...], device: str) -> None:
        self.device = device  # the model's
        self.kind: Kind = "numpy"
        self.on_device = False  # they lie in the memory of the model's CUDA device
        self.arrays: list[Any] = []  # alive until the step is over
        self.addresses: list[int] = []
        check = Checker(device)
        for spec, value, path in in_order(given, wanted, "inputs"):
            self._add(check, spec, value, path)
        check.finish()

    def _add(self, check: Checker, spec: TensorSpec, value: Any, path: str) -> None:
        kind = kind_of(value, path)
        on_device = kind == "torch" and value.device.type == "cuda"
        if not self.arrays:
            self.kind, self.on_device = kind, on_device
        elif (kind, on_device) != (self.kind, self.on_device):
            check.add("MIXED_ARRAYS", path, "it is of another kind, or on another device, than the first input")
        self.arrays.append(value)
        if kind == "numpy":
            self.addresses.append(check.numpy(spec, value, path))
            return
        address = check.torch(spec, value, path)
        if on_device and not spec.contiguous and not check.problems:
            laid_out: Any = empty(spec, "torch", self.device)
            laid_out.copy_(value)
            self.arrays.append(laid_out)
            address = laid_out.data_ptr()
        self.addresses.append(address)


class Outputs:
    """Arrays for the outputs of a step: those that were given, and new ones like the inputs."""

    def __init__(self, wanted: tuple[TensorSpec, ...], inputs: Inputs, out: Mapping[str, Any]) -> None:
        self.arrays: dict[str, Any] = {}
        self.addresses: list[int] = []
        self._later: list[tuple[Any, Any]] = []  # what torch copies once the step is launched: from and to
        check = Checker(inputs.device)
        given = {spec.name: (value, path) for spec, value, path in in_order(out, wanted, "outputs", partial=True)}
        for spec in wanted:
            if spec.name in given:
                value, path = given[spec.name]
                self.addresses.append(self._take(check, spec, value, path, inputs))
            else:
                value = empty(spec, inputs.kind, inputs.device if inputs.on_device else "host")
                self.addresses.append(address_of(value))
            self.arrays[spec.name] = value
        if len(given) > 1 and not check.problems:
            _check_apart(check, {name: value for name, (value, _) in given.items()})
        check.finish()

    def _take(self, check: Checker, spec: TensorSpec, value: Any, path: str, inputs: Inputs) -> int:
        kind = kind_of(value, path)
        on_device = kind == "torch" and value.device.type == "cuda"
        if (kind, on_device) != (inputs.kind, inputs.on_device):
            check.add("MIXED_ARRAYS", path, "it is of another kind, or on another device, than the inputs")
            return 0
        if kind == "numpy":
            return check.numpy(spec, value, path, writeable=True)
        address = check.torch(spec, value, path)
        if on_device and not spec.contiguous and not check.problems:
            laid_out: Any = empty(spec, "torch", inputs.device)
            self._later.append((laid_out, value))
            return int(laid_out.data_ptr())
        return address

    def finish(self) -> dict[str, Any]:
        """Give the arrays, once the step is launched."""
        for source, target in self._later:
            target.copy_(source)
        return self.arrays


def _check_apart(check: Checker, given: Mapping[str, Any]) -> None:
    """Refuse arrays that overlap: the one that is written last would win."""
    spans = sorted((address_of(value), value.nbytes, name) for name, value in given.items() if value.nbytes)
    for (start, length, name), (following, _, other) in itertools.pairwise(spans):
        if following < start + length:
            check.add("OVERLAP", f"outputs/{other}", f"its memory overlaps that of {name}")


def current_stream(device: str) -> int:
    """Give torch's current stream on a CUDA device."""
    import torch

    if torch.cuda.is_current_stream_capturing():
        problem = Problem(
            "CAPTURING",
            "torch captures the current stream, and a step of the engine cannot become part of its graph",
            "inputs",
        )
        raise InputError(str(problem), [problem])
    return int(torch.cuda.current_stream(device).cuda_stream)
