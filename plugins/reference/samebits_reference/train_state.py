"""The state of a training run by name: parameters, buffers, momentum and averages; as it is, set back, or in a file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping

import safetensors.torch
import torch

from samebits_reference import weights
from samebits_reference.training import Training
from samebits_wire.memory import dtype_name
from samebits_wire.problems import Problem, ProblemError

FORMAT = "samebits-checkpoint"
_STEP_DIGITS = 12  # a fixed width, so that a file's length is known before its step


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that fits."""

    steps: int
    tensors: Mapping[str, torch.Tensor]


class State:
    """What outlives a step. `trained` names the parameters that get gradients: those have momentum."""

    def __init__(self, module: torch.nn.Module, training: Training, trained: list[str]) -> None:
        self.steps = 0
        self._module, self._training = module, training
        parameters = dict(module.named_parameters())
        self._trained = {name: parameters[name] for name in trained}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Give all of it as it is now, without copies but for momentum that does not exist yet."""
        named = dict(self._fixed())
        for name, parameter in self._trained.items():
            momentum = self._training.optimizer.state.get(parameter, {}).get("momentum_buffer")
            # -0 is what makes the first momentum the gradient itself, as when there was none.
            named[f"momentum.{name}"] = torch.full_like(parameter, -0.0) if momentum is None else momentum
        for name, tensor in self._averages():
            named[f"ema.{name}"] = tensor
        return {name: tensor.detach() for name, tensor in named.items()}

    def _fixed(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Give parameters and buffers: what lies where it is for as long as the module lives."""
        for name, parameter in self._module.named_parameters():
            yield f"param.{name}", parameter
        for name, buffer in self._module.named_buffers():
            yield f"buffer.{name}", buffer

    def restart(self) -> None:
        """Begin a run with the weights that are there: no momentum, averages equal to the weights."""
        self.steps = 0
        self._training.optimizer.state.clear()
        now = self._module.state_dict()
        with torch.no_grad():
            for name, average in self._training.average.ema.state_dict().items():
                average.copy_(now[name])

    def save(self) -> bytes:
        """Write a checkpoint."""
        metadata = {"format": FORMAT, "steps": f"{self.steps:0{_STEP_DIGITS}d}"}
        data = safetensors.torch.save({name: tensor.cpu().contiguous() for name, tensor in self.tensors().items()}, metadata)
        return _sorted_metadata(data)

    def check(self, data: bytes, required: set[str]) -> Checkpoint:
        """Read a checkpoint of this model and see that all of it fits. required are the weights that the step reads."""
        given, metadata = _decode(data)
        problems = []
        if metadata.get("format") != FORMAT:
            what = f"its format is {metadata.get('format')!r}, not {FORMAT!r}"
            problems.append(Problem("BAD_CHECKPOINT", what, "checkpoint/__metadata__.format"))
        steps = metadata.get("steps", "")
        if not steps.isdecimal() or not steps.isascii() or len(steps) > _STEP_DIGITS:
            problems.append(
                Problem("BAD_CHECKPOINT", f"{steps!r:.40} is no number of steps", "checkpoint/__metadata__.steps")
            )
        begun = steps.strip("0") != ""
        wanted = self.tensors()
        for name in sorted(wanted.keys() - given.keys()):
            kind, _, weight = name.partition(".")
            if weight in required and (begun or kind != "momentum"):
                problems.append(Problem("MISSING_WEIGHT", "the checkpoint has no such tensor", f"checkpoint/{name}"))
        for name, tensor in sorted(given.items()):
            problems += _misfits(name, tensor, wanted.get(name))
        if problems:
            raise ProblemError(problems)
        return Checkpoint(int(steps), given)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Set the state to what `check` gave. Parameters and buffers stay where they are."""
        self.restart()
        self.steps = checkpoint.steps
        averages, fixed = dict(self._averages()), dict(self._fixed())
        with torch.no_grad():
            for name, tensor in checkpoint.tensors.items():
                kind, _, weight = name.partition(".")
                if name in fixed:
                    fixed[name].copy_(tensor)
                elif kind == "ema":
                    averages[weight].copy_(tensor)
                elif kind == "momentum" and self.steps:
                    parameter = self._trained[weight]
                    momentum = torch.empty_like(parameter).copy_(tensor)
                    self._training.optimizer.state[parameter]["momentum_buffer"] = momentum

    def _averages(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in self._training.average.ema.state_dict().items():
            if tensor.is_floating_point():
                yield name, tensor


class Snapshot:
    """Parameters, buffers and random generators as they are now, to be set back in place after runs that do not count."""

    def __init__(self, module: torch.nn.Module, device: torch.device) -> None:
        self._device = device
        tensors = [tensor.detach() for tensor in (*module.parameters(), *module.buffers())]
        self._kept = [(tensor, tensor.clone()) for tensor in tensors]
        self._random = torch.get_rng_state()
        self._cuda_random = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        """Set everything back, once the device has done all that it was given."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        for tensor, kept in self._kept:
            tensor.copy_(kept)
        torch.set_rng_state(self._random)
        if self._cuda_random is not None:
            torch.cuda.set_rng_state(self._cuda_random, self._device)
            torch.cuda.synchronize(self._device)


def _misfits(name: str, given: torch.Tensor, wanted: torch.Tensor | None) -> Iterator[Problem]:
    path = f"checkpoint/{name}"
    if wanted is None:
        yield Problem("UNEXPECTED_WEIGHT", "the run has no such tensor", path)
        return
    if given.dtype != wanted.dtype:
        what = f"it is {dtype_name(given.dtype)}, the run has {dtype_name(wanted.dtype)}"
        yield Problem("WRONG_DTYPE", what, path)
    if given.shape != wanted.shape:
        yield Problem("WRONG_SHAPE", f"it is {list(given.shape)}, the run has {list(wanted.shape)}", path)


def _decode(data: bytes) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    try:
        given = weights.decode(data)
    except ProblemError as error:
        problem = Problem("BAD_CHECKPOINT", error.problems[0].summary, "checkpoint")
        raise ProblemError(problem) from error
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return given, header.get("__metadata__") or {}


def _sorted_metadata(data: bytes) -> bytes:
    """Give a file whose bytes depend on what it holds alone: the library writes metadata in random order."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(length)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]
