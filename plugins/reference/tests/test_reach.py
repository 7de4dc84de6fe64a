"""What the host may read of a step: constants that lie on the host. Everything else a graph would freeze."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import built, hand_made, probe, take
from interpreter import Interpreter
from torch import nn

from samebits_reference import recorder
from samebits_reference.families import flatten
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import ProblemError


class Reads(nn.Module):
    """Reads something on the host, in one of many ways, and goes on with it."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("schedule", torch.tensor([0.25, 1.0]))
        self.scale = nn.Parameter(torch.tensor(3.0))
        self.table = torch.tensor([4.0, 5.0])  # no buffer: a constant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.number(x)

    def number(self, x: torch.Tensor) -> float:
        match self.how:
            case "buffer":
                return 2.0 if self.schedule[1] > 0.5 else 3.0
            case "parameter":
                return float(self.scale)
            case "constant":
                return self.table[0].item()
            case "made here":
                return float(torch.arange(5).sum())
            case "list":
                return sum(self.schedule.tolist())
            case "array":
                return float(np.asarray(self.schedule)[0])
            case "input":
                return float(x.sum())
            case "input, by a list":
                return x.sum().reshape(1).tolist()[0]
            case "input, by an array":
                return float(np.asarray(x[0, 0, 0])[0])
            case "input, compared":
                return 2.0 if torch.equal(x, x + 1) else 3.0
            case "input, written over a constant":
                here = torch.zeros(2)
                here[0] = x[0, 0, 0, 0]
                return here[1].item()
            case "input, through a view":
                here = torch.zeros(2)
                here.view(1, 2)[:, 1:].copy_(x[0, 0, :1, :1])
                return float(here.sum())
            case "random":
                return torch.rand(()).item()
        raise AssertionError(self.how)


HOST = ("buffer", "parameter", "constant", "made here", "list", "array")


@pytest.mark.parametrize("how", HOST)
def test_constants_on_the_host_are_read(how: str) -> None:
    module = Reads(how)
    of = hand_made(module)
    images = probe(built("resnet"), 1)
    taken = take(of, images.clone())
    assert take(of, probe(built("resnet"), 2)).data == taken.data
    assert not any("scalar_dense" in operation.name for operation in taken.recording.operations)
    ((name, eager),) = flatten(of.step(images.clone()))
    assert torch.equal(Interpreter(taken.data, taken.weights).run(images)[name], eager)
    host = [(s.key, s.value) for s in taken.recording.header.profile_settings if s.key.startswith("host.")]
    read = {"buffer": "schedule", "list": "schedule", "array": "schedule", "parameter": "scale"}.get(how)
    assert host == ([(f"host.{read}", digest_tensor(getattr(module, read)))] if read else [])


@pytest.mark.parametrize(
    "how",
    [
        "input",
        "input, by a list",
        "input, by an array",
        "input, compared",
        "input, written over a constant",
        "input, through a view",
        "random",
    ],
)
def test_what_an_input_reaches_is_not(how: str) -> None:
    of = hand_made(nn.Sequential(Reads(how)))
    with pytest.raises(ProblemError) as refusal:
        take(of, probe(built("resnet"), 1))
    problems = [problem for problem in refusal.value.problems if problem.reason == "DYNAMIC_OPERATION"]
    assert "reads what an input reaches on the host" in problems[0].summary
    assert problems[0].detail.startswith("module 0, test_reach.py:")


def test_methods_are_themselves_again() -> None:
    assert "numpy" not in vars(torch.Tensor)
    assert "tolist" not in vars(torch.Tensor)


def test_a_device_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device stands for a GPU: the step runs there, a schedule stays on the CPU."""
    monkeypatch.setitem(recorder._ALLOCATOR_ALIGNMENT, "meta", 512)
    of = hand_made(Reads("buffer"))
    of.device = torch.device("meta")
    images = torch.empty(of.input_sizes, device="meta")
    taken = take(of, images)
    assert taken.weights.keys() == {"schedule"}
    assert [operation.name for operation in taken.recording.operations][-1] == "aten::mul.Tensor"

    watched = recorder.Recorder(of)
    watched.host_reads("aten::_local_scalar_dense", torch.ones((), device="meta"))
    assert "reads memory of the device on the host" in watched._problems[0].summary
    watched._from_device = True
    watched.recording.operations.add(name="aten::_to_copy")
    watched._went(0, torch.ones(()))
    assert "aten::_to_copy copies memory of the device to the host" in watched._problems[1].summary
