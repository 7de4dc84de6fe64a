from __future__ import annotations

import pytest

from samebits_wire import arm_pb2 as wire
from samebits_wire.loop import explain
from samebits_wire.problems import Kind, Problem, ProblemError, encode


def decode(data: bytes) -> list[wire.Problem]:
    return list(wire.Problems.FromString(data).problems)


def test_every_problem_is_sent() -> None:
    sent = decode(encode([Problem("A", "first", "x[1]", "do this"), Problem("B", "second")], 4032))
    assert [(p.reason, p.summary, p.path, p.detail) for p in sent] == [
        ("A", "first", "x[1]", "do this"),
        ("B", "second", "", ""),
    ]


@pytest.mark.parametrize("limit", [200, 1000, 4032, 6144])
def test_too_many_problems_are_counted(limit: int) -> None:
    problems = [Problem("UNKNOWN_OPERATION", "no such operation", f"operations[{i}]") for i in range(1000)]
    data = encode(problems, limit)
    sent = decode(data)
    assert len(data) <= limit
    assert sent[-1].reason == "MORE_PROBLEMS"
    assert sent[-1].summary == f"{1000 - (len(sent) - 1)} more problems"


@pytest.mark.parametrize("start", ["", "e"])  # a cut through a character, and between two
@pytest.mark.parametrize("count", [1, 2])
def test_a_long_problem_is_cut(count: int, start: str) -> None:
    data = encode([Problem("LONG", start + "é" * 9000, "p" * 9000, "d" * 9000)] * count, 4032)
    sent = decode(data)
    assert len(data) <= 4032
    assert sent[0].reason == "LONG"
    assert sent[0].summary.endswith("é…")
    assert len(sent) == count


def test_text_that_is_no_utf8_is_sent_all_the_same() -> None:
    assert decode(encode([Problem("A", "file \udcff")], 4032))[0].summary == "file ?"


def test_no_problem_is_a_problem() -> None:
    assert decode(encode([], 4032))[0].reason == "INTERNAL"


class OutOfMemoryError(RuntimeError):
    """Named like torch's."""


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ProblemError(Problem("X", "y"), Kind.WRONG_ORDER), Kind.WRONG_ORDER, "X"),
        (ProblemError([]), Kind.INTERNAL, "PLUGIN_EXCEPTION"),
        (NotImplementedError(), Kind.UNIMPLEMENTED, "UNIMPLEMENTED"),
        (MemoryError(), Kind.OUT_OF_MEMORY, "OUT_OF_MEMORY"),
        (OutOfMemoryError("CUDA out of memory"), Kind.OUT_OF_MEMORY, "OUT_OF_MEMORY"),
        (ZeroDivisionError("x"), Kind.INTERNAL, "PLUGIN_EXCEPTION"),
        (SystemExit(3), Kind.INTERNAL, "PLUGIN_EXCEPTION"),
    ],
)
def test_errors_are_explained(error: BaseException, kind: Kind, reason: str) -> None:
    explained = explain(error)
    assert explained.kind is kind
    assert explained.problems[0].reason == reason


def test_an_exception_says_where() -> None:
    try:
        {}["x"]
    except KeyError as error:
        problem = explain(error).problems[0]
    assert problem.summary == "KeyError: 'x'"
    assert "test_wire_problems.py:" in problem.detail
