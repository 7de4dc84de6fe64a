"""Problems written for people: a stable reason, what is wrong, where, and what to do."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable

from samebits_wire import arm_pb2


class Kind(enum.Enum):
    """Why a call is refused. Each kind is one gRPC status."""

    BAD_INPUT = "INVALID_ARGUMENT"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    WRONG_ORDER = "FAILED_PRECONDITION"
    OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
    INTERNAL = "INTERNAL"


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what somebody gave us."""

    reason: str  # stable id in capitals: UNKNOWN_FAMILY
    summary: str  # one line, lower case
    path: str = ""  # where: inputs/images, weights/layer1.0.conv1.weight
    detail: str = ""  # what to do, or more of what was seen

    def __str__(self) -> str:
        text = f"{self.reason}: {self.summary}"
        if self.path:
            text = f"{self.path}: {text}"
        return f"{text} ({self.detail})" if self.detail else text


class ProblemError(Exception):
    """Refuses a call with every problem that was found. The plugin goes on serving."""

    def __init__(self, problems: Problem | Iterable[Problem], kind: Kind = Kind.BAD_INPUT) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.kind = kind
        super().__init__("; ".join(str(problem) for problem in self.problems))


def encode(problems: Iterable[Problem], limit: int) -> bytes:
    """Serialize problems in at most `limit` bytes; those that do not fit are counted by a last one."""
    problems = list(problems) or [Problem("INTERNAL", "no problem was named")]
    kept = arm_pb2.Problems()
    used = 0
    for index, problem in enumerate(problems):
        message = _message(problem)
        size = message.ByteSize() + 8
        reserve = 80 if index < len(problems) - 1 else 0  # for the problem that counts the rest
        if used + size + reserve > limit:
            if index == 0:
                kept.problems.append(_shorten(message, limit - 80))
                index = 1
            if index < len(problems):
                kept.problems.add(reason="MORE_PROBLEMS", summary=f"{len(problems) - index} more problems")
            break
        used += size
        kept.problems.append(message)
    return kept.SerializeToString(deterministic=True)


def _message(problem: Problem) -> arm_pb2.Problem:
    texts = (_valid(text) for text in (problem.reason, problem.summary, problem.detail, problem.path))
    return arm_pb2.Problem(**dict(zip(("reason", "summary", "detail", "path"), texts, strict=True)))


def _valid(text: str) -> str:
    """Replace what UTF-8 cannot carry: lone surrogates, as file names have them."""
    return text.encode("utf-8", "replace").decode()


def _shorten(message: arm_pb2.Problem, limit: int) -> arm_pb2.Problem:
    """Cut a problem's texts so that they fit in `limit` bytes."""
    limit -= 32  # tags and lengths
    shares = {"reason": 8, "path": 8, "detail": 8, "summary": 2}
    return arm_pb2.Problem(**{name: _cut(getattr(message, name), limit // share) for name, share in shares.items()})


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore") + "…"
