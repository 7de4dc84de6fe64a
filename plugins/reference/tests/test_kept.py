"""What a family keeps of weights by their versions is part of the step that is recorded."""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, built, hand_made, named, probe, take
from torch import nn

from samebits_reference.arms import EAGER, ReferenceArm
from samebits_reference.families import Built
from samebits_reference.kept import Kept, keeps
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb


def run_once(module: nn.Module) -> Built:
    of = hand_made(module)
    of.step(probe(of, 0))
    return of


def made(kept: Kept, of: Built) -> pb.Recording:
    images = probe(built("resnet"), 1)
    return kept.made(of, images, named(), take(of, images)).recording


def names(recording: pb.Recording) -> list[str]:
    return [operation.name for operation in recording.operations]


class Keeping(nn.Module):
    """Keeps what it computed of a weight until the weight has another version."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([3.0]), requires_grad=False)
        self.kept: tuple[int, torch.Tensor] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kept is None or self.kept[0] != self.scale._version:
            self.kept = self.scale._version, torch.exp(self.scale)
        return x * self.kept[1]


def test_what_is_kept_is_recorded() -> None:
    of, kept = run_once(Keeping()), Kept()
    for _ in range(3):
        recording = made(kept, of)
        assert names(recording) == ["aten::exp", "aten::mul.Tensor"]
        assert all(storage.role != pb.ROLE_CONSTANT for storage in recording.storages)
        assert names(take(of, probe(built("resnet"), 1)).recording) == ["aten::mul.Tensor"]  # steps go on as before


def test_weights_that_were_loaded_hide_nothing_that_is_kept() -> None:
    module, x = Keeping(), torch.ones(1)
    for _ in range(2):
        assert keeps(module, lambda: module(x))
        torch.autograd.graph.increment_version([module.scale])  # what a load does: the next step makes it anew
    plain = nn.Linear(1, 1)
    assert not keeps(plain, lambda: plain(x))


class Alternating(nn.Module):
    """Does something else in some steps, whatever the versions are."""

    def __init__(self, period: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([3.0]))
        self.period, self.steps = period, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.scale if self.steps % self.period else x + self.scale


@pytest.mark.parametrize("offset", [0, 1, 2])
@pytest.mark.parametrize("period", [2, 3, 5])
def test_a_step_that_alternates_stays_seen(period: int, offset: int) -> None:
    """Were the same one of several steps recorded each time, one that alternates would look constant."""
    of, kept = run_once(Alternating(period)), Kept()
    for _ in range(offset):
        of.step(probe(built("resnet"), 1))
    assert len({tuple(names(made(kept, of))) for _ in range(2 * period + 4)}) == 2


def test_a_real_family(host: HostMemory) -> None:
    """Recorded four times, as the suite does: `ec` keeps the bins of its distribution, which follow from two parameters."""
    arm = ReferenceArm()
    reply = arm.build(wire.BuildRequest(family="ec", arm=EAGER, precision="fp32", device="cpu", imgsz=320), host.memory)
    bank = host.bank(reply.inputs)
    recorded = set()
    for seed in (1, 1, 2, 2):
        (images,) = host.tensors(bank)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
        place = host.region(arm.record(wire.RecordRequest(inputs=bank), host.memory).recording_length)
        arm.export(wire.ExportRequest(what=wire.ExportRequest.WHAT_RECORDING, region=place), host.memory)
        recorded.add(bytes(host.memory.view(place)))
    (data,) = recorded
    weights = {storage.name for storage in pb.Recording.FromString(data).storages}
    assert {"decoder.up", "decoder.reg_scale"} <= weights  # a step by itself reads the bins alone
