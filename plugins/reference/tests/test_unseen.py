"""Operations that run and that no recorder sees."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import built, hand_made, named, probe
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference import recorder
from samebits_wire.problems import ProblemError


class Step(torch.nn.Module):
    def __init__(self, step: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: torch.Tensor) -> Any:
        return self.step(x)


def observe(step: Callable[[torch.Tensor], Any]) -> recorder.Taken:
    return recorder.record(hand_made(Step(step)), probe(built("resnet"), 1), named(), observed=True)


def elsewhere(x: torch.Tensor) -> torch.Tensor:
    thread = threading.Thread(target=lambda: x.mean())
    thread.start()
    thread.join()
    return x + 1.0


def unwatched(x: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        return x + float(x.mean())


UNSEEN: dict[str, tuple[str, Callable[[torch.Tensor], Any]]] = {
    "thread": ("aten::mean runs in another thread", elsewhere),
    "switched off": ("aten::_local_scalar_dense runs where no recorder", unwatched),
    "in a tensor": ("aten::_local_scalar_dense runs where", lambda x: x + torch.tensor([x.mean(), 1.0])[0]),
    "repr": ("aten::_local_scalar_dense runs where", lambda x: x + len(repr(x.mean()))),
}


@pytest.mark.parametrize("way", UNSEEN)
def test_what_is_unseen(way: str) -> None:
    said, step = UNSEEN[way]
    with pytest.raises(ProblemError, match="UNSEEN_WORK") as refusal:
        observe(step)
    assert any(said in problem.summary for problem in refusal.value.problems)


def test_what_is_seen() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        made = torch.tensor([1.0, 2.0]) * torch.arange(2) + torch.zeros(2).to(torch.float64).float()
        return (
            torch.nn.functional.layer_norm(torch.nn.functional.conv2d(x, torch.ones(2, 3, 1, 1)), x.shape[-2:]) + made.sum()
        )

    assert observe(step).recording.operations


@dataclasses.dataclass
class Held:
    tensor: torch.Tensor


def test_tensors_in_outputs_that_nobody_would_compare() -> None:
    with pytest.raises(ProblemError, match=r"UNRECORDABLE: it is a Held that holds tensors.*") as refusal:
        observe(lambda x: {"out": x + 1.0, "more": [Held(x)]})
    assert refusal.value.problems[0].path == "outputs/more.0"
    with pytest.raises(ProblemError) as refusal:
        observe(lambda x: Held(x + 1.0))
    assert "outputs/output" in [problem.path for problem in refusal.value.problems]
    assert [name for name, _ in observe(lambda x: {"out": x + 1.0, "more": (None, 3, "a")}).outputs] == ["out"]


def test_a_process_that_is_killed_while_it_records_leaves_no_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[pathlib.Path] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.extend(tmp_path.iterdir())
        return x + 1.0

    observe(look)
    assert seen == []


def _refused(name: str) -> int:
    raise PermissionError(name)


def _forgetful(_name: str) -> int:
    return os.open(os.devnull, os.O_RDWR)


@pytest.mark.parametrize("create", [_refused, _forgetful])
def test_without_memory_that_has_a_path_the_trace_is_a_file_that_is_removed(
    create: Callable[[str], int], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "memfd_create", create)
    seen: list[pathlib.Path] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.extend(tmp_path.glob("samebits-*"))
        return x + 1.0

    observe(look)
    assert len(set(seen)) == 1
    assert list(tmp_path.iterdir()) == []


def test_descriptors_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no")

    def descriptors() -> list[str]:
        return sorted(entry.name for entry in pathlib.Path("/proc/self/fd").iterdir())

    observe(lambda x: x + 1.0)
    before = descriptors()
    observe(lambda x: x + 1.0)
    with pytest.raises(RuntimeError, match="no"):
        observe(fails)
    monkeypatch.setattr(os, "memfd_create", _forgetful)
    observe(lambda x: x + 1.0)
    assert descriptors() == before
