"""Graphs of several shapes and packings side by side, with real graphs. Run on a GPU: python -m pytest -m gpu."""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, same_bits

from samebits_reference.arms import EAGER, GRAPH, ReferenceArm
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb

pytestmark = pytest.mark.gpu


class Served:
    """An arm with one bank of inputs and one of outputs for each situation."""

    def __init__(self, host: HostMemory, arm: str, order: dict[str, object], inputs: list[wire.Bank]) -> None:
        self.host, self.inputs, self.arm = host, inputs, ReferenceArm()
        self.arm.build(wire.BuildRequest(arm=arm, device="cuda:0", **order), host.memory)
        session = self.arm._session
        outputs = []
        for bank in inputs:
            session._find(session._place(host.memory, bank, "inputs"))
            specs = [spec.message() for spec in list(session._situations.values())[-1].outputs]
            outputs.append(host.bank(specs))
        self.outputs = outputs
        request = wire.PrepareRequest(inputs=inputs, outputs=outputs, cuda_graph=arm == GRAPH)
        self.arm.prepare(request, host.memory)

    def run(self, at: int) -> list[torch.Tensor]:
        self.arm.disturb(wire.DisturbRequest(poison_outputs=True, churn=True))
        self.arm.step(at, at)
        return [tensor.clone() for tensor in self.host.tensors(self.outputs[at])]


def spec(name: str, *sizes: int, dtype: pb.DType = pb.DTYPE_FLOAT32) -> wire.TensorSpec:
    return wire.TensorSpec(name=name, dtype=dtype, sizes=sizes)


def serve(host: HostMemory, order: dict[str, object], inputs: list[wire.Bank]) -> Served:
    graph, eager = Served(host, GRAPH, order, inputs), Served(host, EAGER, order, inputs)
    assert graph.arm.stats().captures == 2
    for turn, at in enumerate((0, 1, 0, 1, 1, 0)):
        images = host.tensors(inputs[at])[0]
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(turn)))
        assert all(map(same_bits, graph.run(at), eager.run(at))), (turn, at)
    stats = graph.arm.stats()
    assert (stats.replays, stats.eager_steps, stats.fallbacks) == (6, 0, 0)
    return graph


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_two_sizes_of_ppocr(host: HostMemory, precision: str) -> None:
    inputs = [host.bank([spec("images", 1, 3, size, size)]) for size in (640, 480)]
    serve(host, {"family": "ppocr", "imgsz": 640, "precision": precision}, inputs)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_two_packings_of_the_tower(host: HostMemory, precision: str) -> None:
    order = {"family": "sensenova", "size": "tiny", "precision": precision}
    inputs = []
    for grids in ([16, 16], [8, 32]):
        inputs.append(host.bank([spec("images", 256, 3, 14, 14), spec("grids", 1, 2, dtype=pb.DTYPE_INT64)]))
        host.tensors(inputs[-1])[1].copy_(torch.tensor([grids]))
    graph = serve(host, order, inputs)
    host.tensors(inputs[1])[1].copy_(torch.tensor([[32, 8]]))
    graph.run(1)
    stats = graph.arm.stats()
    assert (stats.replays, stats.eager_steps, stats.fallbacks) == (6, 1, 1)
