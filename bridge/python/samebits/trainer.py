"""Training: load a recording of a training step, run it with new hyperparameters each time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import TracebackType
from typing import Any, Union

import numpy as np

from ._arrays import TensorSpec, numpy_dtype, specs
from ._calls import Handle, run
from ._errors import InputError, Problem
from ._graphs import Graphed
from ._loading import Bytes, GraphMode, Source, load_options, log_line, sources
from ._steps import Inputs, Outputs, current_stream

Rate = Union[float, Sequence[float]]


def load_trainer(
    recording: Source,
    weights: Source | None = None,
    *,
    device: Any = "host",
    cuda_graph: GraphMode = False,
    certificates: str | os.PathLike[str] | None = None,
) -> Trainer:
    """Load a recording of mode ``train`` and the weights to start from.

    Arguments and errors are those of `samebits.load`, but `cuda_graph` is always safe to pass: without a certificate steps
    run eagerly, which one line says in the log ``samebits``; if a step cannot be captured, one `SamebitsWarning` says so.
    """
    recording, weights = sources(recording, weights)
    options = load_options(device, cuda_graph, certificates)
    recording_bytes, weights_bytes = Bytes(recording, "recording"), Bytes(weights)
    handle = Handle("trainer")
    described = run("LoadTrainer", handle.number, *recording_bytes.span, *weights_bytes.span, options)
    handle.loaded = True
    return Trainer(handle, described)


class Trainer(Graphed):
    """A run of training. `load_trainer` makes it, and ``with`` closes it.

    Parameters, buffers, momentum and the moving average live on the device; a step changes them in place.

    Attributes:
        groups: the names of the parameters of each group, in the order of the optimizer.
        state_specs: a `TensorSpec` for each of ``param.X``, ``buffer.X``, ``momentum.X``, ``ema.X``.
        steps: finished steps, with those before a restored checkpoint.
        inputs, outputs: those of the first recording: ``images``, ``targets``; ``loss``, ``grad.X``.

    Further ones are those of `samebits.Model`.

    """

    _what = "trainer"

    def __init__(self, handle: Handle, described: Mapping[str, Any]) -> None:
        """Use `samebits.load_trainer` instead."""
        super().__init__(handle, described)
        self.groups: list[list[str]] = described["groups"]
        self.state_specs: tuple[TensorSpec, ...] = specs(described["state"])
        self.steps: int = described["steps"]

    def add_recording(self, recording: Source) -> None:
        """Load a recording of the same run at another shape of input: the last batch of an epoch. State stays as it is."""
        data = Bytes(recording, "recording")
        described = self._call("AddShape", *data.span)
        self._shapes.append((specs(described["inputs"]), specs(described["outputs"])))
        log_line(described)

    def train_step(
        self,
        *inputs: Any,
        lr: Rate,
        momentum: float = 0.0,
        weight_decay: Rate = 0.0,
        ema_decay: float = 0.0,
        outputs: Iterable[str] = ("loss",),
    ) -> dict[str, Any]:
        """Run forward, loss, backward and the optimizer once.

        Args:
            inputs: images and targets, or one mapping from their names. NumPy arrays or torch tensors, as in
                `Model.predict`. Their shapes say which of the loaded recordings runs.
            lr: the learning rate, for all groups or one for each. Like the others it may change before every step, and is
                finite and not below 0.
            momentum: of SGD. Nesterov or not is the recording's.
            weight_decay: one for each group; a single number only if it is 0 or there is one group, for norms and biases are
                seldom meant.
            ema_decay: of the moving average, for recordings that have one; at most 1.
            outputs: what to return: ``loss``, and ``grad.X`` for the gradients.

        The update is PyTorch's foreach SGD in float32: ``g = wd * p + g``, ``m = momentum * m + g``, then
        ``g = momentum * m + g`` with Nesterov, else ``g = m``; ``p = p - lr * g``; ``ema = d * ema + (1 - d) * p``.
        docs/numerics.md says what is fused, and what ``grad.X`` is with Nesterov.

        Raises:
            TypeError: a hyperparameter is no number.
            InputError: a hyperparameter or a class number is out of range, beside the errors of `Model.predict`. Class
                numbers on a CUDA device are not looked at, because nothing waits there: a wrong one makes the loss NaN.

        """
        hyper = {
            "lr": self._rates("lr", lr),
            "weight_decay": self._rates("weight_decay", weight_decay),
            "momentum": _number("momentum", momentum),
            "ema_decay": _number("ema_decay", ema_decay, most=1.0),
        }
        given: Any = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Mapping) else inputs
        number = self._fitting(given)[0]
        wanted_inputs, available = self._shapes[number]
        checked = Inputs(given, wanted_inputs, self.device)
        wanted = _named(available, outputs)
        made = Outputs(wanted, checked, {})
        step = {
            "shape": number,
            "inputs": checked.addresses,
            "outputs": [
                {"output": available.index(spec), "address": address}
                for spec, address in zip(wanted, made.addresses, strict=True)
            ],
            "on_device": checked.on_device,
            "stream": current_stream(self.device) if checked.on_device else 0,
            "hyper": hyper,
        }
        self.steps = self._call("TrainStep", json.dumps(step))["steps"]
        return made.finish()

    def state(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Copy state into NumPy arrays: all of it, or what is named: ``param.fc.weight``, ``ema.fc.weight``, ..."""
        wanted = self.state_specs if names is None else _named(self.state_specs, names)
        arrays = {spec.name: np.empty(spec.shape, numpy_dtype(spec)) for spec in wanted}
        call = {"names": list(arrays), "addresses": [array.ctypes.data for array in arrays.values()]}
        self._call("ReadState", json.dumps(call))
        return arrays

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint (safetensors, which the reference reads too). An older file is replaced only by a whole one.

        Raises:
            OSError: it cannot be written. An older checkpoint is still there.

        """
        self._call("SaveCheckpoint", os.fsdecode(path))

    def restore(self, checkpoint: Source) -> None:
        """Go on from a checkpoint. If anything is wrong with it, nothing changes.

        Raises:
            CheckpointError: it is torn, or of another model; `problems` lists everything.

        """
        data = Bytes(checkpoint, "checkpoint")
        self.steps = self._call("RestoreCheckpoint", *data.span)["steps"]

    def save_weights(self, path: str | os.PathLike[str], *, ema: bool = False) -> None:
        """Write parameters and buffers, or their moving average, as weights that `samebits.load` takes."""
        self._call("SaveWeights", os.fsdecode(path), ema)

    def _rates(self, name: str, value: Rate) -> list[float]:
        groups = len(self.groups)
        if isinstance(value, (float, int, Real)):
            if name == "weight_decay" and value != 0 and groups != 1:
                raise _wrong_hyper(name, f"one number for {groups} parameter groups: give a list, as `groups` has them")
            return [_number(name, value)] * groups
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name} is a number or a list of numbers, not {type(value).__name__}")
        rates = [_number(name, rate) for rate in value]
        if len(rates) != groups:
            raise _wrong_hyper(name, f"{len(rates)} numbers for {groups} parameter groups")
        return rates

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _named(available: Sequence[TensorSpec], names: Iterable[str]) -> tuple[TensorSpec, ...]:
    known = {spec.name: spec for spec in available}
    wanted = list(names)
    problems = [Problem("UNKNOWN_NAME", "there is no such tensor", name) for name in wanted if name not in known]
    if problems:
        raise InputError("; ".join(map(str, problems)), problems)
    return tuple(known[name] for name in wanted)


def _number(name: str, value: float, most: float = math.inf) -> float:
    """Refuse what PyTorch's SGD refuses, and what is no number."""
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number, not {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise _wrong_hyper(name, f"{number} is no finite number")
    if not 0.0 <= number <= most:
        raise _wrong_hyper(name, f"{number} is below 0" if number < 0 else f"{number} is above {most:g}")
    return number


def _wrong_hyper(name: str, summary: str) -> InputError:
    problem = Problem("WRONG_HYPER", summary, f"hyper/{name}")
    return InputError(str(problem), [problem])
