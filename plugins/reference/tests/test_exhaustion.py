"""Tests of memory that runs out where PyTorch says nothing."""

from __future__ import annotations

import pytest
import torch

from samebits_reference.exhaustion import choosing, serving
from samebits_wire.problems import Kind, ProblemError


class Arm:
    """Does what an arm's call might do."""

    def __init__(self) -> None:
        """Begin without failures."""
        self.failures = [3, 0]

    @choosing
    def step(self, failing: int) -> str:
        """Run a step in which so many allocations fail, and PyTorch goes on."""
        self.failures[1] += failing
        return "outputs"


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Arm:
    """Give an arm on a machine with two GPUs."""
    made = Arm()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda device: {"num_ooms": made.failures[device]})
    return made


def test_what_failed_before_is_no_matter(arm: Arm) -> None:
    assert arm.step(0) == "outputs"


def test_an_allocation_that_was_caught_is_told(arm: Arm) -> None:
    with pytest.raises(ProblemError) as caught:
        arm.step(1)
    assert caught.value.kind is Kind.OUT_OF_MEMORY
    assert [(found.reason, found.path) for found in caught.value.problems] == [("OUT_OF_MEMORY", "step")]
    assert arm.step(0) == "outputs"


def test_without_a_gpu_nothing_is_asked(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert arm.step(1) == "outputs"


class Serving:
    """An arm's call that fails."""

    @serving
    def load(self, error: BaseException) -> None:
        """Fail."""
        raise error

    @serving
    def give(self, one: int, *, other: int) -> tuple[int, int]:
        """Do not."""
        return one, other


def test_calls_that_do_not_fail_are_as_they_were() -> None:
    assert Serving().give(1, other=2) == (1, 2)


def caused() -> RuntimeError:
    """Give an error that comes from another one."""
    error = RuntimeError("it failed")
    error.__context__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmore lines")
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory.\nmore lines"), "CUDA out of memory."),
        (MemoryError(), "no memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't"), "[enforce fail] DefaultCPUAllocator: can't"),
        (caused(), "it failed"),
    ],
    ids=["device", "Python", "host", "from another"],
)
def test_memory_that_ran_out_is_a_refusal(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed.append("cache"))
    with pytest.raises(ProblemError) as caught:
        Serving().load(error)
    assert caught.value.kind is Kind.OUT_OF_MEMORY
    assert [(p.reason, p.summary, p.path) for p in caught.value.problems] == [("OUT_OF_MEMORY", said, "load")]
    assert freed == ["cache"]


@pytest.mark.parametrize("error", [RuntimeError("shapes"), ValueError("no"), KeyError("x")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        Serving().load(error)
    assert caught.value is error
