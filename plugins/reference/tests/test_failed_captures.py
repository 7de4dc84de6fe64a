"""What a capture that fails leaves behind, without a GPU: the calls on one are noted, and nothing else."""

from __future__ import annotations

import contextlib
import gc
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from samebits_reference import graphs
from samebits_wire.problems import Problem, ProblemError

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
