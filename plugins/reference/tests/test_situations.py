"""One graph a shape, and one a packing: what a graph was not captured for, it never replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import HostMemory, same_bits

from samebits_reference import families, graphs, predict_session, profile
from samebits_reference.arms import GRAPH
from samebits_reference.families import Built, Order, flatten
from samebits_reference.predict_session import PredictSession
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.problems import ProblemError


class StandIn:
    """What a CUDA graph does, without CUDA: it repeats the step with the keys of its capture."""

    def __init__(self, step: Callable[[], Any], *, watched: bool = False) -> None:
        assert watched
        self.nodes, self.kinds = 7, {"kernel": 7}
        self._step = step
        self._keys = {name: key.clone() for name, key in StandIn.of.keys.items()}
        self.outputs = [(name, tensor.clone()) for name, tensor in flatten(step())]

    of: Built

    def replay(self) -> None:
        kept = dict(self.of.keys)
        self.of.keys.update(self._keys)
        for (_, target), (_, made) in zip(self.outputs, flatten(self._step()), strict=True):
            target.copy_(made)
        self.of.keys.update(kept)

    def release(self) -> None:
        self.outputs = []


def opened(monkeypatch: pytest.MonkeyPatch, order: Order) -> PredictSession:
    monkeypatch.setattr(graphs, "Graph", StandIn)
    StandIn.of = families.build(order)
    return PredictSession(GRAPH, profile.EXACT_1, StandIn.of)


def spec(name: str, *sizes: int, dtype: pb.DType = pb.DTYPE_FLOAT32) -> wire.TensorSpec:
    return wire.TensorSpec(name=name, dtype=dtype, sizes=sizes)


def fill(bank: list[torch.Tensor], seed: int) -> torch.Tensor:
    bank[0].copy_(torch.rand(bank[0].shape, generator=torch.Generator().manual_seed(seed)))
    return bank[0]


def test_two_shapes_have_two_graphs(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    session = opened(monkeypatch, Order("fomo", imgsz=64))
    inputs = [host.bank([spec("images", 1, 3, size, size)]) for size in (64, 48, 64)]
    sizes = [spec.sizes for spec in session.outputs]
    outputs = [host.bank([s.message() for s in session.outputs])]
    other = [tensor.shape for _, tensor in flatten(StandIn.of.step(torch.zeros(1, 3, 48, 48)))]
    outputs.append(host.bank([spec(s.name, *shape) for s, shape in zip(session.outputs, other, strict=True)]))
    assert sizes != other
    session.prepare(host.memory, wire.PrepareRequest(inputs=inputs, outputs=outputs, cuda_graph=True))
    assert len(session.captured()) == 2
    for seed, bank in enumerate((0, 1, 2, 1, 0)):
        images = fill(host.tensors(inputs[bank]), seed)
        session.give(bank)
        session.run()
        session.take(bank % 2)
        for given, (_, eager) in zip(host.tensors(outputs[bank % 2]), flatten(StandIn.of.step(images.clone())), strict=True):
            assert same_bits(given, eager)
    assert (session.stats.replays, session.stats.eager_steps, session.stats.fallbacks) == (5, 0, 0)
    session.give(0)
    session.run()
    with pytest.raises(ProblemError, match="outputs of other sizes"):
        session.take(1)


def test_images_that_a_family_does_not_take_are_refused(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    session = opened(monkeypatch, Order("fomo", imgsz=64))
    for sizes, reason in (
        ((1, 3, 60, 60), "BAD_IMAGE_SIZE"),
        ((2000, 3, 8, 8), "BAD_BATCH"),
        ((1, 1, 64, 64), "WRONG_SHAPE"),
    ):
        request = wire.PrepareRequest(inputs=[host.bank([spec("images", *sizes)])])
        with pytest.raises(ProblemError, match=reason):
            session.prepare(host.memory, request)


PACKINGS = ([[16, 16]], [[8, 32]], [[8, 16], [8, 16]])  # all of 256 patches


def packed(host: HostMemory, grids: list[list[int]]) -> wire.Bank:
    bank = host.bank([spec("images", 256, 3, 14, 14), spec("grids", len(grids), 2, dtype=pb.DTYPE_INT64)])
    host.tensors(bank)[1].copy_(torch.tensor(grids))
    return bank


def eager(grids: list[list[int]], images: torch.Tensor) -> torch.Tensor:
    kept = StandIn.of.keys["grids"]
    StandIn.of.keys["grids"] = torch.tensor(grids)
    made = StandIn.of.step(images.clone())
    StandIn.of.keys["grids"] = kept
    return made


def test_a_packing_without_a_graph_is_never_replayed(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    session = opened(monkeypatch, Order("sensenova", size="tiny"))
    inputs = [packed(host, grids) for grids in PACKINGS[:2]]
    output = host.bank([s.message() for s in session.outputs])
    session.prepare(host.memory, wire.PrepareRequest(inputs=inputs, outputs=[output], cuda_graph=True))
    assert len(session.captured()) == 2
    seen = []
    for grids, bank in ((PACKINGS[0], 0), (PACKINGS[1], 1), (PACKINGS[0], 0), ([[32, 8]], 1), (PACKINGS[1], 1)):
        images = fill(host.tensors(inputs[bank]), 7)
        host.tensors(inputs[bank])[1].copy_(torch.tensor(grids))  # changed behind Prepare's back, too
        session.give(bank)
        session.run()
        session.take(0)
        (made,) = host.tensors(output)
        assert same_bits(made, eager(grids, images)), grids
        seen.append(made.clone())
    assert same_bits(seen[0], seen[2])
    assert not same_bits(seen[0], seen[1])
    assert not same_bits(seen[1], seen[3])
    assert (session.stats.replays, session.stats.eager_steps, session.stats.fallbacks) == (4, 1, 1)
    assert "no graph of these sizes and keys" in session.stats.fallback_reason


def test_graphs_that_know_shapes_alone_would_be_found(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    sizes_alone = property(lambda bank: (tuple(tuple(tensor.shape) for tensor in bank.inputs), ()))
    monkeypatch.setattr(predict_session.InputBank, "signature", sizes_alone)
    session = opened(monkeypatch, Order("sensenova", size="tiny"))
    inputs = [packed(host, grids) for grids in PACKINGS[:2]]
    output = host.bank([s.message() for s in session.outputs])
    session.prepare(host.memory, wire.PrepareRequest(inputs=inputs, outputs=[output], cuda_graph=True))
    images = fill(host.tensors(inputs[1]), 7)
    session.give(1)
    session.run()
    session.take(0)
    (made,) = host.tensors(output)
    assert not same_bits(made, eager(PACKINGS[1], images))


@pytest.mark.parametrize("grids", [[[16, 15]], [[33, 1]], [[0, 256]], [[-16, -16]], [[1, 256]]])
def test_packings_that_do_not_fit_are_refused(
    monkeypatch: pytest.MonkeyPatch, host: HostMemory, grids: list[list[int]]
) -> None:
    session = opened(monkeypatch, Order("sensenova", size="tiny"))
    with pytest.raises(ProblemError, match="BAD_PACKING"):
        session.prepare(host.memory, wire.PrepareRequest(inputs=[packed(host, grids)]))
