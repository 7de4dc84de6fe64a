"""Tests of memory that runs out where PyTorch says nothing."""

from __future__ import annotations

import pytest
import torch

from samebits_reference.exhaustion import choosing
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
