"""What a capture leaves behind, one that fails above all, without a GPU: the calls on one are noted, and nothing else."""

from __future__ import annotations

import contextlib
import gc
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from samebits_reference import graphs, node_kinds
from samebits_wire.problems import Kind, Problem, ProblemError

BEFORE = types.SimpleNamespace(device_index=0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for a GPU."""
    noted: list[str] = []

    class Driver:
        def __init__(self, **_how: Any) -> None:
            noted.append("graph")

        def reset(self) -> None:
            noted.append("reset")

        def instantiate(self) -> None:
            noted.append("instantiate")

        def replay(self) -> None:
            noted.append("replay")

    @contextlib.contextmanager
    def capture(*_args: Any, **_how: Any) -> Iterator[None]:
        noted.append("begin")
        assert not gc.isenabled()
        try:
            yield
        finally:
            noted.append("end")

    side = types.SimpleNamespace(wait_stream=lambda _stream: None)
    monkeypatch.setattr(graphs, "_side_stream", lambda _device: side)
    for name, stand_in in {
        "current_stream": lambda: BEFORE,
        "stream": lambda _stream: contextlib.nullcontext(),
        "set_stream": lambda stream: noted.append("before" if stream is BEFORE else "other"),
        "synchronize": lambda: noted.append("wait"),
        "CUDAGraph": Driver,
        "graph": capture,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return noted


def failing(error: Exception) -> Any:
    """Give a step that fails when it is captured."""
    runs = 0

    def step() -> torch.Tensor:
        nonlocal runs
        runs += 1
        if runs > graphs.WARM_UP_RUNS:
            raise error
        return torch.zeros(1)

    return step


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("no"), AssertionError("no")])
def test_a_family_that_cannot_be_captured_is_refused(calls: list[str], error: Exception) -> None:
    with pytest.raises(ProblemError, match="CAPTURE_FAILED: PyTorch cannot capture this step: no"):
        graphs.Graph(failing(error))
    assert calls == ["wait", "graph", "begin", "end", "reset", "before"]
    assert gc.isenabled()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), ProblemError(Problem("MINE", "no"))])
def test_what_is_no_matter_of_captures_stays_what_it_is(calls: list[str], error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        graphs.Graph(failing(error))
    assert raised.value is error
    assert calls[-2:] == ["reset", "before"]
    assert gc.isenabled()


def test_a_stream_that_nobody_waits_for_has_a_reason_of_its_own(calls: list[str]) -> None:
    with pytest.raises(
        ProblemError, match="UNJOINED_STREAM: work on a stream of the step's own is not waited for"
    ) as refusal:
        graphs.Graph(failing(RuntimeError("\ncudaErrorStreamCaptureUnjoined: unjoined work\nmore")))
    (problem,) = refusal.value.problems
    assert problem.path == "prepare"
    assert problem.summary.endswith(": cudaErrorStreamCaptureUnjoined: unjoined work")
    assert refusal.value.kind is Kind.UNIMPLEMENTED
    with pytest.raises(ProblemError, match="CAPTURE_FAILED: PyTorch cannot capture this step: ValueError"):
        graphs.Graph(failing(ValueError()))


def test_collections_that_were_off_stay_off(calls: list[str]) -> None:
    gc.disable()
    try:
        graphs.Graph(lambda: torch.zeros(1))
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.fixture
def counted(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What is counted in a captured graph."""
    kinds = {"kernel": 2, "memset": 1}
    monkeypatch.setattr(node_kinds, "count", lambda _graph: dict(kinds))
    monkeypatch.setattr(node_kinds, "can_count", lambda: True)
    return kinds


def test_a_captured_step_is_replayed(calls: list[str], counted: dict[str, int]) -> None:
    runs: list[torch.Tensor] = []

    def step() -> dict[str, torch.Tensor]:
        runs.append(torch.zeros(1))
        return {"made": runs[-1]}

    graph = graphs.Graph(step)
    assert (len(runs), graph.nodes, graph.kinds) == (graphs.WARM_UP_RUNS + 1, 3, {"kernel": 2, "memset": 1})
    assert [(name, tensor is runs[-1]) for name, tensor in graph.outputs] == [("made", True)]
    assert calls == ["wait", "graph", "begin", "end", "instantiate", "before"]
    graph.replay()
    graph.release()
    assert calls[-2:] == ["replay", "reset"]
    assert graph.outputs == []


@pytest.mark.parametrize(
    ("kinds", "reasons"),
    [
        ({}, ["EMPTY_GRAPH"]),
        ({"kernel": 1, "alloc": 2, "free": 1}, ["ALLOC_IN_REGION"]),
        ({"alloc": 1}, ["ALLOC_IN_REGION"]),
        ({"kernel": 1, "alloc": 2, "free": 2}, []),
        ({"kernel": 1, "free": 1}, []),
    ],
)
def test_a_graph_that_does_not_hold_the_step_is_refused(
    calls: list[str], counted: dict[str, int], kinds: dict[str, int], reasons: list[str]
) -> None:
    counted.clear()
    counted.update(kinds)
    if not reasons:
        assert graphs.Graph(lambda: torch.zeros(1)).kinds == kinds
        assert "reset" not in calls
        return
    with pytest.raises(ProblemError) as refusal:
        graphs.Graph(lambda: torch.zeros(1))
    assert [(problem.reason, problem.path) for problem in refusal.value.problems] == [(why, "prepare") for why in reasons]
    assert refusal.value.kind is Kind.UNIMPLEMENTED
    assert calls[-1] == "reset"


def test_where_nobody_can_count_no_graph_is_empty(
    calls: list[str], counted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted.clear()
    monkeypatch.setattr(node_kinds, "can_count", lambda: False)
    assert graphs.Graph(lambda: torch.zeros(1)).nodes == 0


def test_what_replays_write_is_poisoned(calls: list[str], counted: dict[str, int]) -> None:
    static, kept = torch.zeros(2), torch.zeros(2)
    made: list[torch.Tensor] = []

    def step() -> tuple[torch.Tensor, ...]:
        made.append(torch.zeros(2, 2))
        return made[-1][1], static, kept

    graph = graphs.Graph(step)
    graph.poison([static])
    assert made[-1].isnan().all()  # the whole storage
    assert static.eq(0).all()
    assert kept.eq(0).all()  # a constant that was made before


class Streams:
    """The current stream, and whether it is captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.captured = "side", True
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: self.now)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.captured)

    def step(self, watch: graphs.StreamWatch) -> None:
        """Run two operations where they are watched."""
        with watch:
            torch.zeros(1)
            torch.ones(1)


def test_work_on_a_stream_that_is_not_captured_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    watch = graphs.StreamWatch("side")  # type: ignore[arg-type] # it is compared
    streams.now = "other"
    streams.step(watch)
    assert watch.problems == []  # a warm-up may go where it likes
    assert watch.of_capture() is watch
    streams.step(watch)
    assert watch.problems == []  # it came back to the capture
    streams.captured = False
    streams.step(watch)
    (problem,) = watch.problems
    assert (problem.reason, problem.path) == ("OFF_STREAM_WORK", "prepare")
    assert problem.summary.startswith("aten::zeros runs on a stream that is not captured")
    assert "test_failed_captures.py:" in problem.detail


def test_who_stays_on_the_stream_is_not_watched_further(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    watch = graphs.StreamWatch("side")  # type: ignore[arg-type] # it is compared
    streams.step(watch)
    assert watch.of_capture() is not watch
    streams.now, streams.captured = "other", False
    assert watch.problems == []


def test_a_graph_that_left_its_stream_is_refused_whatever_it_gives(
    calls: list[str], counted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    with pytest.raises(ProblemError, match="OFF_STREAM_WORK"):
        graphs.Graph(lambda: torch.zeros(1), watched=True)  # the stream of the stand-in is never the side stream
    assert calls[-1] == "reset"
    graphs.Graph(lambda: torch.zeros(1))
    with pytest.raises(ProblemError) as refusal:
        graphs.Graph(failing(RuntimeError("no")), watched=True)
    assert [problem.reason for problem in refusal.value.problems] == ["CAPTURE_FAILED"]  # nothing ran in the capture
