"""What only a CUDA device can tell. Run there: python -m pytest -m gpu plugins/reference/tests."""

from __future__ import annotations

import collections

import pytest
import torch
from conftest import HostMemory, built, probe, same_bits, take
from interpreter import Interpreter

from samebits_reference import families, graphs
from samebits_reference.arms import GRAPH, ReferenceArm
from samebits_reference.families import Order, flatten
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import ProblemError

pytestmark = pytest.mark.gpu

CELLS = [
    ("resnet", "fp32", 640, 1),
    ("resnet", "bf16", 640, 1),
    ("resnet", "fp16", 640, 1),
    ("yolo9", "fp32", 640, 1),
    ("yolo9", "bf16", 640, 1),
    ("yolo9", "fp32", 320, 4),
    ("yolo9", "bf16", 320, 4),
]

# Operations that eager PyTorch 2.11 runs on an H200.
COUNTS = {
    ("resnet", "fp32"): {"aten::convolution": 20, "aten::cudnn_batch_norm": 20, "aten::relu_": 17, "aten::addmm": 1},
    ("resnet", "bf16"): {"aten::convolution": 20, "aten::native_batch_norm": 20, "aten::relu_": 17, "aten::addmm": 1},
    ("yolo9", "fp32"): {
        "aten::convolution": 227,
        "aten::cudnn_batch_norm": 221,
        "aten::silu": 179,
        "aten::add.Tensor": 127,
        "aten::cat": 34,
    },
    ("yolo9", "bf16"): {
        "aten::_to_copy": 240,
        "aten::convolution": 227,
        "aten::native_batch_norm": 221,
        "aten::empty.memory_format": 221,
        "aten::silu": 179,
        "aten::add.Tensor": 127,
        "aten::cat": 34,
    },
}
TOTALS = {("resnet", "fp32"): 70, ("resnet", "bf16"): 113, ("yolo9", "fp32"): 821, ("yolo9", "bf16"): 1282}


@pytest.mark.parametrize(("family", "precision", "imgsz", "batch"), CELLS)
def test_replay_equals_eager(family: str, precision: str, imgsz: int, batch: int) -> None:
    of = built(family, precision, imgsz, batch, "cuda:0")
    static = probe(of, 0)
    graph = graphs.Graph(lambda: of.step(static))
    assert graph.nodes > 50
    for seed in (1, 2, 1, 3, 1):
        images = probe(of, seed)
        eager = {name: tensor.clone() for name, tensor in flatten(of.step(images))}
        graph.poison([static])
        static.copy_(images)
        graph.replay()
        torch.cuda.synchronize()
        assert {name for name, _ in graph.outputs} == eager.keys()
        for name, tensor in graph.outputs:
            assert same_bits(tensor, eager[name]), name
    graph.release()


def test_eomt_is_recorded_and_a_device_read_is_not() -> None:
    """Its schedule lies on the CPU beside a model on the GPU; the recording knows what was read there."""
    of = families.build(Order("eomt", device="cuda:0"))
    of.step(probe(of, 0))
    first, second = take(of, probe(of, 1)), take(of, probe(of, 2) * 0.5 + 0.25)
    assert first.data == second.data
    assert [s.key for s in first.recording.header.profile_settings if s.key.startswith("host.")] == [
        "host.eomt.attn_mask_probs"
    ]
    of.module.eomt.attn_mask_probs = of.module.eomt.attn_mask_probs.to("cuda:0")
    with pytest.raises(ProblemError, match="reads memory of the device on the host"):
        take(of, probe(of, 1))


@pytest.mark.parametrize(("family", "precision", "imgsz", "batch"), [cell for cell in CELLS if cell[1] != "fp16"])
def test_recordings_hold_the_operations_that_were_counted(family: str, precision: str, imgsz: int, batch: int) -> None:
    of = built(family, precision, imgsz, batch, "cuda:0")
    first, second = take(of, probe(of, 1)), take(of, probe(of, 2) * 10 - 5)
    assert first.data == second.data
    names = collections.Counter(operation.name for operation in first.recording.operations)
    assert first.recording.header.device_type == "cuda"
    assert len(first.recording.operations) == TOTALS[family, precision]
    for name, count in COUNTS[family, precision].items():
        assert names[name] == count, name


@pytest.mark.parametrize(("family", "precision", "imgsz", "batch"), CELLS)
def test_an_independent_interpreter_gets_eagers_bits(family: str, precision: str, imgsz: int, batch: int) -> None:
    of = built(family, precision, imgsz, batch, "cuda:0")
    taken = take(of, probe(of, 1))
    interpreter = Interpreter(taken.data, taken.weights, "cuda:0")
    for seed in (2, 3):
        images = probe(of, seed)
        eager = dict(flatten(of.step(images.clone())))
        for name, tensor in interpreter.run(images).items():
            assert same_bits(tensor, eager[name]), name


def test_weights_are_those_of_the_cpu() -> None:
    cuda, cpu = built("yolo9", device="cuda:0").weights(), built("yolo9").weights()
    assert all(same_bits(tensor.cpu(), cpu[name]) for name, tensor in cuda.items())


def test_a_graph_arm_captures_replays_and_counts(host: HostMemory) -> None:
    arm = ReferenceArm()
    request = wire.BuildRequest(family="resnet", arm=GRAPH, precision="bf16", device="cuda:0", imgsz=64)
    reply = arm.build(request, host.memory)
    place = host.region(reply.weights_length)
    arm.export(wire.ExportRequest(what=wire.ExportRequest.WHAT_WEIGHTS, region=place), host.memory)
    loaded = arm.load(wire.LoadRequest(weights=place, device="cuda:0", arm=GRAPH), host.memory)
    inputs, outputs = [host.bank(reply.inputs) for _ in range(2)], [host.bank(loaded.outputs) for _ in range(2)]
    for seed, bank in enumerate(inputs):
        (images,) = host.tensors(bank)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
    prepared = arm.prepare(wire.PrepareRequest(inputs=inputs, outputs=outputs, cuda_graph=True), host.memory)
    assert prepared.captured
    assert prepared.nodes > 50
    eager = families.build(Order("resnet", precision="bf16", device="cuda:0", imgsz=64))
    for index in (0, 1, 0, 1, 1):
        arm.disturb(wire.DisturbRequest(poison_outputs=True, churn=True))
        arm.step(index, index)
        (images,), (output,) = host.tensors(inputs[index]), host.tensors(outputs[index])
        ((_, expected),) = flatten(eager.step(images.cuda()))
        assert same_bits(output, expected.cpu())
    stats = arm.stats()
    assert (stats.captures, stats.replays, stats.eager_steps) == (1, 5, 0)
    assert stats.launches == 5 * prepared.nodes
    assert len(arm.measure(wire.MeasureRequest(warmup=2, iterations=5)).milliseconds) == 5
    again = arm.prepare(wire.PrepareRequest(inputs=inputs, outputs=outputs, cuda_graph=True), host.memory)
    assert again.captured
    arm.step(0, 0)


def test_a_gpu_out_of_memory_is_refused_and_the_arm_goes_on(host: HostMemory) -> None:
    from samebits_wire.problems import Kind, ProblemError

    arm = ReferenceArm()
    huge = wire.BuildRequest(family="resnet", arm=GRAPH, precision="fp32", device="cuda:0", imgsz=8192, batch=1024)
    with pytest.raises(ProblemError, match="OUT_OF_MEMORY") as caught:
        arm.build(huge, host.memory)
    assert caught.value.kind is Kind.OUT_OF_MEMORY
    arm.build(wire.BuildRequest(family="resnet", arm=GRAPH, precision="fp32", device="cuda:0", imgsz=64), host.memory)
