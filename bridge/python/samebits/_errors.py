"""Exceptions, and the one place where the engine's errors become exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    `reason` is a stable id in capitals, `path` says where: ``inputs/images``, ``weights/conv.weight``, ``operations[12]``.
    """

    reason: str
    summary: str
    path: str = ""
    detail: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        more = f" ({self.detail})" if self.detail else ""
        return f"{where}{self.reason}: {self.summary}{more}"


class SamebitsError(Exception):
    """The base of all errors of this package.

    `problems` lists everything that was found wrong in one pass; it is empty where there is nothing more to say than the
    text. `code` is the kind of error, a stable word in capitals.
    """

    code = "ERROR"

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        self.message = message
        self.problems: list[Problem] = list(problems)
        super().__init__(message, self.problems)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def reasons(self) -> list[str]:
        """The reason ids of all problems."""
        return [problem.reason for problem in self.problems]


class RecordingError(SamebitsError, ValueError):
    """The recording is torn, unsound, of another version or of another mode."""

    code = "RECORDING"


class WeightsError(SamebitsError, ValueError):
    """The weights are torn, or do not fit the recording."""

    code = "WEIGHTS"


class CheckpointError(SamebitsError, ValueError):
    """The checkpoint is torn, or of another model."""

    code = "CHECKPOINT"


class UnsupportedError(SamebitsError, NotImplementedError):
    """The engine does not do what the recording wants. `problems` lists every such operation."""

    code = "UNSUPPORTED"


class UncertifiedError(SamebitsError, NotImplementedError):
    """No certificate that verifies here lets this cell be replayed as a CUDA graph. `problems` says why not."""

    code = "UNCERTIFIED"


class DeviceError(SamebitsError, RuntimeError):
    """The device, its driver, its libraries or its compiler are missing or failed."""

    code = "DEVICE"


class OutOfMemoryError(SamebitsError, MemoryError):
    """The device has no room for the model."""

    code = "MEMORY"


class InputError(SamebitsError, ValueError):
    """A value that was passed is wrong: not one of the kinds that are taken, or out of its range."""

    code = "INPUT"


class DTypeError(InputError, TypeError):
    """An array has another element type than the recording."""


class ShapeError(InputError):
    """An array has another shape than the recording."""


class StridesError(InputError):
    """An array's elements do not lie as they must: in row-major order without gaps."""


class ClosedError(SamebitsError, RuntimeError):
    """The model or trainer was closed."""

    code = "CLOSED"


class ForkedError(SamebitsError, RuntimeError):
    """The engine was started before this process was forked, and does not work in the child."""

    code = "FORKED"


class InternalError(SamebitsError, RuntimeError):
    """A mistake of Samebits. Please report it with its text."""

    code = "INTERNAL"


class SamebitsWarning(RuntimeWarning):
    """Something works otherwise than was asked for."""


_BY_CODE: dict[str, type[SamebitsError]] = {
    kind.code: kind
    for kind in (
        RecordingError,
        WeightsError,
        CheckpointError,
        UnsupportedError,
        UncertifiedError,
        DeviceError,
        OutOfMemoryError,
        InputError,
    )
} | {ClosedError.code: ClosedError}

_BY_REASON: dict[str, type[InputError]] = {
    "WRONG_DTYPE": DTypeError,
    "WRONG_SHAPE": ShapeError,
    "WRONG_STRIDES": StridesError,
}


def translated(text: str) -> Exception:
    """Make an exception of an error's text as bridge/python/errors.go writes it: ``CODE: {"message", "problems", "errno"}``.

    A file that cannot be written is an OSError, as everywhere in Python.
    """
    code, _, rest = text.partition(": ")
    kind = _BY_CODE.get(code, InternalError)
    try:
        content = json.loads(rest)
        if code == "FILE" and content["errno"]:
            return OSError(content["errno"], content["message"])
        return kind(content["message"], [Problem(**problem) for problem in content["problems"]])
    except (ValueError, TypeError, KeyError):
        return InternalError(text)


def wrong_input(problems: list[Problem]) -> InputError:
    """Make the exception of problems with arrays: a special one if they are all of one kind."""
    kinds = {_BY_REASON.get(problem.reason, InputError) for problem in problems}
    kind = kinds.pop() if len(kinds) == 1 else InputError
    return kind("; ".join(map(str, problems)), problems)
