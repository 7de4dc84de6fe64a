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
    problems = list(problems)
    for keep in range(len(problems), 0, -1):
        message = arm_pb2.Problems(problems=[_message(problem) for problem in problems[:keep]])
        if keep < len(problems):
            message.problems.add(reason="MORE_PROBLEMS", summary=f"{len(problems) - keep} more problems")
        data = message.SerializeToString(deterministic=True)
        if len(data) <= limit:
            return data
    first = problems[0] if problems else Problem("INTERNAL", "no problem was named")
    short = arm_pb2.Problem(reason=first.reason[:200], summary=first.summary[: limit // 8], path=first.path[: limit // 16])
    return arm_pb2.Problems(problems=[short]).SerializeToString(deterministic=True)


def _message(problem: Problem) -> arm_pb2.Problem:
    return arm_pb2.Problem(reason=problem.reason, summary=problem.summary, path=problem.path, detail=problem.detail)
