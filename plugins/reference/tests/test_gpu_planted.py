"""Planted faults that only a GPU shows, as the recorder or a capture refuses them. Run there: python -m pytest -m gpu.

`parity selftest --device cuda:0` tries all of them with the whole suite.
"""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, named

from samebits_reference import families, profile
from samebits_reference.arms import GRAPH
from samebits_reference.families import Order
from samebits_reference.predict_session import PredictSession
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import ProblemError

pytestmark = pytest.mark.gpu

RECORDER = {
    "c32-staging-block": "H2D_IN_REGION",
    "c82-capture-dispatch": "CAPTURE_DEPENDENT_DISPATCH",
    "c97-numpy": "DYNAMIC_OPERATION",
    "c104-device-schedule": "DYNAMIC_OPERATION",
    "c104-host-index": "H2D_IN_REGION",
    "c111-own-graph": "UNSEEN_WORK",
}
CAPTURE = {
    "c56-never-freed": "ALLOC_IN_REGION",
    "c61-other-stream": "OFF_STREAM_WORK",
    "c62-first-stream": "EMPTY_GRAPH",
    "c67-unjoined-stream": "UNJOINED_STREAM",
    "c84-left-out": "EMPTY_GRAPH",
    "c102-lazy-constant": "LAZY_BUFFER_IN_POOL",
    "c106-never-captured": "CAPTURE_FAILED",
}


class Served:
    def __init__(self, family: str, host: HostMemory) -> None:
        self.host = host
        self.session = PredictSession(GRAPH, profile.EXACT_1, families.build(Order(family, device="cuda:0")))
        self.inputs = host.bank([spec.message() for spec in self.session.inputs])
        self.outputs = host.bank([spec.message() for spec in self.session.outputs])

    def record(self) -> None:
        for seed in (1, 1, 2, 2):
            (images,) = self.host.tensors(self.inputs)
            images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
            self.session.record(self.host.memory, self.inputs, named())

    def prepare(self) -> None:
        request = wire.PrepareRequest(inputs=[self.inputs], outputs=[self.outputs], cuda_graph=True)
        self.session.prepare(self.host.memory, request)
        self.session.give(0)
        self.session.run()
        self.session.take(0)
        self.session.wait()


@pytest.mark.parametrize("family", RECORDER)
def test_the_recorder_refuses(family: str, host: HostMemory) -> None:
    Served(f"{family}@twin", host).record()
    with pytest.raises(ProblemError) as refusal:
        Served(family, host).record()
    assert refusal.value.problems[0].reason == RECORDER[family], refusal.value.problems


@pytest.mark.parametrize("family", CAPTURE)
def test_the_capture_is_refused(family: str, host: HostMemory) -> None:
    Served(f"{family}@twin", host).prepare()
    stream = torch.cuda.current_stream()
    with pytest.raises(ProblemError) as refusal:
        Served(family, host).prepare()
    assert refusal.value.problems[0].reason == CAPTURE[family], refusal.value.problems
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.current_stream() == stream
    Served(f"{family}@twin", host).prepare()  # nothing stays behind


def test_a_graph_says_that_it_allocates(host: HostMemory) -> None:
    of = Served("c36-stream-ordered", host)
    of.prepare()
    (graph,) = of.session.captured()
    assert (graph.kinds["alloc"], graph.kinds["free"]) == (1, 1)


def test_modes_that_fail_are_named(host: HostMemory) -> None:
    of = Served("c114-inference-constant", host)
    of.prepare()
    with pytest.raises(ProblemError, match="MODE_NOT_KEYED"):
        of.session.situate("mode", 0)


def test_a_second_capture_that_fails_is_named(host: HostMemory) -> None:
    of = Served("c107-captured-once", host)
    of.prepare()
    with pytest.raises(ProblemError, match="RECAPTURE_FAILED"):
        of.session.situate("thread", 0)
