"""What happens between steps, with real graphs. Run on a GPU: python -m pytest -m gpu."""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, same_bits

from samebits_reference import families, node_kinds
from samebits_reference.arms import GRAPH, ReferenceArm
from samebits_reference.families import Order, flatten
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import ProblemError

pytestmark = pytest.mark.gpu


class Served:
    """A graph arm with one bank, and an eager family of its own beside it."""

    def __init__(self, host: HostMemory) -> None:
        order = {"family": "resnet", "precision": "fp32", "device": "cuda:0", "imgsz": 64}
        self.host, self.arm = host, ReferenceArm()
        built = self.arm.build(wire.BuildRequest(arm=GRAPH, **order), host.memory)
        weights = host.region(built.weights_length)
        self.arm.export(wire.ExportRequest(what=wire.ExportRequest.WHAT_WEIGHTS, region=weights), host.memory)
        loaded = self.arm.load(wire.LoadRequest(weights=weights, device="cuda:0", arm=GRAPH), host.memory)
        self.inputs, self.outputs = host.bank(built.inputs), host.bank(loaded.outputs)
        self.arm.prepare(wire.PrepareRequest(inputs=[self.inputs], outputs=[self.outputs], cuda_graph=True), host.memory)
        self.eager = families.build(Order(**order))
        self.seed = 0

    def situate(self, situation: str) -> None:
        self.arm.situate(wire.SituateRequest(situation=situation, seed=3))

    def step(self) -> None:
        self.seed += 1
        (images,) = self.host.tensors(self.inputs)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(self.seed)))
        self.arm.disturb(wire.DisturbRequest(poison_outputs=True, churn=True))
        self.arm.step(0, 0)
        eager = flatten(self.eager.step(images.to("cuda:0")))
        assert all(same_bits(a, b.cpu()) for a, (_, b) in zip(self.host.tensors(self.outputs), eager, strict=True))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        stats = self.arm.stats()
        return stats.captures, stats.replays, stats.eager_steps, stats.invalidations


def test_every_situation(host: HostMemory) -> None:
    of = Served(host)
    of.step()
    for situation in ("stream", "seed", "mode"):
        of.situate(situation)
        of.step()
        of.step()
    assert of.counts == (1, 7, 0, 0)
    of.situate("thread")
    of.step()
    assert of.counts == (2, 8, 0, 0)
    of.situate("move")
    of.step()
    assert of.counts == (3, 9, 0, 1)
    of.situate("fail")
    of.step()
    stats = of.arm.stats()
    assert (stats.fallbacks, stats.latched, stats.eager_steps) == (1, True, 1)
    assert not torch.cuda.is_current_stream_capturing()
    torch.rand(1, device="cuda:0")  # the generator is not in a capture either
    of.situate("release")
    of.step()
    assert of.counts == (4, 10, 1, 1)
    assert not of.arm.stats().latched


def test_weights_in_place(host: HostMemory) -> None:
    of = Served(host)
    of.situate("update")
    with torch.no_grad():
        for parameter in of.eager.module.parameters():
            parameter.mul_(0.5)
    of.step()
    assert of.counts == (1, 1, 0, 0)


def test_another_device(host: HostMemory) -> None:
    of = Served(host)
    if torch.cuda.device_count() < 2:
        with pytest.raises(ProblemError, match="NO_SECOND_DEVICE"):
            of.situate("device")
        return
    of.situate("device")
    assert torch.cuda.current_device() == 1
    of.step()
    of.situate("release")
    of.step()
    torch.cuda.set_device(0)


def test_captures_that_fail_keep_no_memory(host: HostMemory) -> None:
    of = Served(host)
    for round_ in range(8):
        of.situate("release")
        of.situate("fail")
        of.step()
        if round_ == 1:
            before = of.arm.stats().allocated_bytes
    assert of.arm.stats().allocated_bytes <= before


def test_kinds_of_nodes(host: HostMemory) -> None:
    of = Served(host)
    kinds = of.arm.stats().nodes_by_kind
    assert kinds["kernel"] > 50
    assert not {"alloc", "free", "host", "memcpy_h2d", "memcpy_d2h", "other"} & kinds.keys()


def test_copies_are_told_apart() -> None:
    device, other = torch.zeros(1024, device="cuda:0"), torch.ones(1024, device="cuda:0")
    pinned = torch.zeros(1024).pin_memory()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        device.copy_(other)
        device.copy_(pinned, non_blocking=True)
        pinned.copy_(other, non_blocking=True)
    kinds = node_kinds.count(graph)
    assert kinds["memcpy_d2d"] == 1
    assert kinds["memcpy_h2d"] == 1
    assert kinds["memcpy_d2h"] == 1
