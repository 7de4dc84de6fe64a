"""Training on a CUDA device. Run there: python -m pytest -m gpu plugins/reference/tests."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator

import pytest
import torch
from conftest import same_bits
from interpreter import Interpreter
from training import BATCH, RECORDING, SHORT, WEIGHTS, ByHand, Host, Hyper, batch, differing

from samebits_reference import weights
from samebits_reference.arms import EAGER, GRAPH
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb

pytestmark = pytest.mark.gpu

PRECISIONS = ["fp32", "bf16"]
HYPERS = [
    Hyper(),
    Hyper((0.02, 0.03, 0.005), (0.0, 1e-3, 0.0), 0.8, 0.5),
    Hyper(),
    Hyper(ema_decay=0.9),
    Hyper(momentum=0.95),
]


@functools.cache
def opened(arm: str, precision: str) -> Host:
    return Host(arm, precision, "cuda:0")


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    opened.cache_clear()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_eager_steps_are_the_trainers_arithmetic(precision: str) -> None:
    host, hand = opened(EAGER, precision), ByHand(precision, "cuda:0")
    host.begin()
    for index, hyper in enumerate(HYPERS):
        given = batch(index, SHORT if index == 2 else BATCH)
        assert differing(host.step(*given, hyper), hand.step(*given, hyper)) == [], f"step {index + 1}"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_replayed_steps_equal_eager_ones(precision: str) -> None:
    eager, graph = opened(EAGER, precision), opened(GRAPH, precision)
    eager.begin()
    prepared = graph.begin(graph=True)
    assert prepared.captured
    assert prepared.nodes > 200
    captures = graph.arm.stats().captures
    for index, hyper in enumerate(HYPERS):
        given = batch(index, SHORT if index == 2 else BATCH)
        graph.arm.disturb(wire.DisturbRequest(poison_outputs=True, churn=True))
        assert differing(graph.step(*given, hyper), eager.step(*given, hyper)) == [], f"step {index + 1}"
    stats = graph.arm.stats()
    assert (captures, stats.captures, stats.replays, stats.eager_steps) == (2, 2, len(HYPERS), 0)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_captures_and_traces_move_no_state(precision: str) -> None:
    graph = opened(GRAPH, precision)
    graph.begin()
    graph.step(*batch(1), Hyper())
    before, random = graph.checkpoint(), torch.cuda.get_rng_state()
    request = wire.PrepareRequest(inputs=graph.inputs, outputs=[graph.outputs], cuda_graph=True)
    graph.arm.prepare(request, graph.memory.memory)
    assert graph.checkpoint() == before
    assert torch.equal(torch.cuda.get_rng_state(), random)
    graph.fill(*batch(2), Hyper())
    graph.arm.trace(wire.TraceRequest(input_bank=0), graph.memory.memory)
    assert graph.checkpoint() == before
    after = graph.step(*batch(2), Hyper())
    graph.begin(before)
    assert differing(graph.step(*batch(2), Hyper()), after) == []


@pytest.mark.parametrize("precision", PRECISIONS)
def test_replays_go_on_from_an_eager_checkpoint(precision: str) -> None:
    eager, graph = opened(EAGER, precision), opened(GRAPH, precision)
    eager.begin()
    eager.step(*batch(1), Hyper())
    middle = eager.checkpoint()
    graph.begin(middle, graph=True)
    assert differing(graph.step(*batch(2), Hyper()), eager.step(*batch(2), Hyper())) == []
    assert len(graph.arm.measure(wire.MeasureRequest(input_bank=0, warmup=1, iterations=3)).milliseconds) == 3


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_device_threads_backward_is_recorded(precision: str) -> None:
    host = opened(EAGER, precision)
    host.begin()
    reply = host.record(1)
    data = host.export(RECORDING, reply.recording_length)
    read = weights.decode(host.export(WEIGHTS, reply.weights_length))
    assert host.export(RECORDING, host.record(2).recording_length) == data
    recording = pb.Recording.FromString(data)
    names = collections.Counter(operation.name for operation in recording.operations)
    norm = "cudnn_batch_norm" if precision == "fp32" else "native_batch_norm"
    assert names["aten::convolution"] == names["aten::convolution_backward"] == 20
    assert names[f"aten::{norm}"] == names[f"aten::{norm}_backward"] == 20
    modules = {operation.module for operation in recording.operations if operation.name == "aten::convolution_backward"}
    assert len(modules) == 20
    interpreter = Interpreter(data, read, "cuda:0")
    for seed in (5, 6):
        given = batch(seed)
        # Nesterov without weight decay would change gradients in place after they were made.
        made = host.step(*given, Hyper(lr=(0.0, 0.0, 0.0), momentum=0.0))
        replayed = interpreter.run(*given)
        assert [name for name, tensor in replayed.items() if not same_bits(tensor.cpu(), made[name])] == []
        state = interpreter.state()
        for name in (name.removeprefix("buffer.") for name in made if name.startswith("buffer.")):
            assert same_bits(state[name].cpu(), made[f"buffer.{name}"].flatten()), name
