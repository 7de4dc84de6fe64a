"""Calls as gRPC hands them to a plugin: what reaches the arm, and what a refusal looks like. With a host: bridge/host."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire import serve
from samebits_wire.arm import Arm
from samebits_wire.loop import Loop
from samebits_wire.memory import CONTROL_BYTES, Memory
from samebits_wire.problems import Kind, Problem, ProblemError
from samebits_wire.servicer import GoPlugin, Servicer

PAGE = mmap.ALLOCATIONGRANULARITY
REPLIES = {
    "describe": wire.DescribeReply(version="fake"),
    "build": wire.BuildReply(size="t"),
    "record": wire.RecordReply(recording_length=3),
    "load": wire.LoadReply(recording_digest="d"),
    "prepare": wire.PrepareReply(nodes=4),
    "situate": wire.SituateReply(),
    "trace": wire.TraceReply(wanted=wire.TensorSpec(name="w")),
    "measure": wire.MeasureReply(),
    "stats": wire.StatsReply(replays=7),
    "process": wire.ProcessReply(text="done"),
}


class Fake(Arm):
    """Notes each call, and answers it or refuses it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refusal: Exception | None = None

    def __getattribute__(self, name: str) -> Any:
        if name not in {*REPLIES, "export", "disturb"}:
            return super().__getattribute__(name)

        def answer(*_arguments: object) -> Any:
            self.calls.append(name)
            if self.refusal is not None:
                raise self.refusal
            return REPLIES.get(name)

        return answer


class Aborted(Exception):  # noqa: N818 (it stands for what gRPC raises)
    pass


class Context:
    """A call's context, as far as it is used."""

    def __init__(self) -> None:
        self.metadata: tuple[tuple[str, bytes], ...] = ()
        self.at_end: list[Callable[[], object]] = []
        self.added = threading.Event()
        self.status: tuple[grpc.StatusCode, str] | None = None

    def set_trailing_metadata(self, metadata: tuple[tuple[str, bytes], ...]) -> None:
        self.metadata = metadata

    def add_callback(self, call: Callable[[], object]) -> bool:
        self.at_end.append(call)
        self.added.set()
        return True

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.status = (code, details)
        raise Aborted


class Plugin:
    """A servicer on a loop that runs in a thread."""

    def __init__(self, descriptor: int, step: socket.socket) -> None:
        self.loop = Loop(descriptor, step, Memory(descriptor))
        self.arm = self.loop.arm = Fake()
        self.servicer = Servicer(self.loop)

    def call(self, name: str, request: Any) -> Any:
        return getattr(self.servicer, name)(request, Context())

    def refused(self, name: str, request: Any) -> tuple[grpc.StatusCode, list[tuple[str, str]]]:
        """Give the status of a call that is refused, and the reason and the path of each problem."""
        context = Context()
        with pytest.raises(Aborted):
            getattr(self.servicer, name)(request, context)
        ((key, data),) = context.metadata
        assert key == "samebits-problems-bin"
        problems = wire.Problems.FromString(data).problems
        assert context.status is not None
        code, details = context.status
        assert details == problems[0].reason
        return code, [(problem.reason, problem.path) for problem in problems]


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, CONTROL_BYTES + 2 * PAGE)
    ours, theirs = socket.socketpair()
    plugin = Plugin(descriptor, theirs)
    thread = threading.Thread(target=plugin.loop.run)
    thread.start()
    plugin.call("Attach", wire.AttachRequest(region=wire.Region(offset=CONTROL_BYTES, length=PAGE)))
    yield plugin
    plugin.loop.stop()
    thread.join(10)
    assert not thread.is_alive()
    ours.close()
    theirs.close()
    os.close(descriptor)


def bank(*sizes: int) -> wire.Bank:
    """A bank of bytes: tensor t0 of the first size in the first attached place, and so on."""
    tensors = [
        wire.PlacedTensor(
            spec=wire.TensorSpec(name=f"t{index}", dtype=pb.DTYPE_UINT8, sizes=[size]),
            region=wire.Region(offset=CONTROL_BYTES + 64 * index, length=1),
        )
        for index, size in enumerate(sizes)
    ]
    return wire.Bank(tensors=tensors)


PREPARE = wire.PrepareRequest(inputs=[bank(1), bank(1)], outputs=[bank(1)])


def test_every_call_is_answered_by_the_arm(plugin: Plugin) -> None:
    assert plugin.call("Describe", wire.DescribeRequest()) == wire.DescribeReply(version="fake", protocol=1)
    assert plugin.call("Build", wire.BuildRequest()) == REPLIES["build"]
    assert plugin.call("Record", wire.RecordRequest(inputs=bank(1))) == REPLIES["record"]
    assert plugin.call("Export", wire.ExportRequest()) == wire.ExportReply()
    assert plugin.call("Load", wire.LoadRequest()) == REPLIES["load"]
    assert plugin.call("Prepare", PREPARE) == REPLIES["prepare"]
    assert plugin.call("Disturb", wire.DisturbRequest()) == wire.DisturbReply()
    assert plugin.call("Situate", wire.SituateRequest()) == REPLIES["situate"]
    assert plugin.call("Trace", wire.TraceRequest(input_bank=1)) == REPLIES["trace"]
    assert plugin.call("Measure", wire.MeasureRequest(input_bank=1)) == REPLIES["measure"]
    assert plugin.call("Stats", wire.StatsRequest()) == REPLIES["stats"]
    assert plugin.call("Process", wire.ProcessRequest(bank=bank(1))) == REPLIES["process"]
    want = "describe build record export load prepare disturb situate trace measure stats process"
    assert plugin.arm.calls == want.split()


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_refusal_is_a_status(plugin: Plugin, kind: Kind) -> None:
    plugin.arm.refusal = ProblemError([Problem("ONE", "it is", "there"), Problem("TWO", "and")], kind)
    assert plugin.refused("Stats", wire.StatsRequest()) == (grpc.StatusCode[kind.value], [("ONE", "there"), ("TWO", "")])
    assert plugin.refused("Export", wire.ExportRequest())[0] is grpc.StatusCode[kind.value]
    assert plugin.refused("Disturb", wire.DisturbRequest())[0] is grpc.StatusCode[kind.value]


def test_what_is_refused_fits_into_a_header(plugin: Plugin) -> None:
    plugin.arm.refusal = ProblemError([Problem("MANY", "x" * 100)] * 1000)
    context = Context()
    with pytest.raises(Aborted):
        plugin.servicer.Stats(wire.StatsRequest(), context)
    assert 4 << 10 < len(context.metadata[0][1]) <= 6 << 10


@pytest.mark.parametrize(
    ("offset", "length"),
    [pytest.param(CONTROL_BYTES + PAGE, 2 * PAGE, id="past the end"), pytest.param(0, PAGE, id="control block")],
)
def test_memory_that_is_not_there_is_not_attached(plugin: Plugin, offset: int, length: int) -> None:
    request = wire.AttachRequest(region=wire.Region(offset=offset, length=length))
    assert plugin.refused("Attach", request) == (grpc.StatusCode.INVALID_ARGUMENT, [("REGION", "")])


def test_places_of_other_sizes_are_refused_all_at_once(plugin: Plugin) -> None:
    request = wire.PrepareRequest(inputs=[bank(1), bank(2, 1, 3)], outputs=[bank(4)])
    paths = ["inputs[1]/t0", "inputs[1]/t2", "outputs[0]/t0"]
    assert plugin.refused("Prepare", request)[1] == [("REGION", path) for path in paths]
    assert plugin.refused("Record", wire.RecordRequest(inputs=bank(2)))[1] == [("REGION", "inputs/t0")]
    assert plugin.refused("Process", wire.ProcessRequest(bank=bank(1, 2)))[1] == [("REGION", "bank/t1")]
    assert plugin.arm.calls == []


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(wire.PrepareRequest(inputs=[bank(1)]), id="no outputs"),
        pytest.param(wire.PrepareRequest(outputs=[bank(1)]), id="no inputs"),
        pytest.param(wire.PrepareRequest(), id="neither"),
    ],
)
def test_banks_of_both_kinds_are_needed(plugin: Plugin, request_: wire.PrepareRequest) -> None:
    assert plugin.refused("Prepare", request_)[1] == [("BANK", "")]


def test_banks_are_those_of_the_last_good_prepare(plugin: Plugin) -> None:
    plugin.call("Prepare", PREPARE)
    assert (plugin.loop.inputs, plugin.loop.outputs) == (2, 1)
    plugin.arm.refusal = ProblemError(Problem("NO", "no"))
    plugin.refused("Prepare", PREPARE)
    assert (plugin.loop.inputs, plugin.loop.outputs) == (0, 0)
    plugin.arm.refusal = None
    plugin.call("Prepare", PREPARE)
    plugin.call("Load", wire.LoadRequest())
    assert (plugin.loop.inputs, plugin.loop.outputs) == (0, 0)


def test_calls_of_banks_that_are_not_there_are_refused(plugin: Plugin) -> None:
    order = (grpc.StatusCode.FAILED_PRECONDITION, [("WRONG_ORDER", "")])
    assert plugin.refused("Situate", wire.SituateRequest(situation="seed")) == order
    plugin.call("Prepare", PREPARE)
    assert plugin.refused("Trace", wire.TraceRequest(input_bank=2))[1] == [("BANK", "")]
    assert plugin.refused("Measure", wire.MeasureRequest(input_bank=2))[1] == [("BANK", "")]
    assert plugin.arm.calls == ["prepare"]


def test_a_call_whose_caller_is_gone_does_not_begin(plugin: Plugin) -> None:
    gate = threading.Event()
    first = plugin.loop.do(lambda: gate.wait(10))
    context = Context()
    ended: list[BaseException] = []

    def call() -> None:
        try:
            plugin.servicer.Stats(wire.StatsRequest(), context)
        except BaseException as error:
            ended.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert context.added.wait(10)
    for call_back in context.at_end:
        call_back()
    caller.join(10)
    gate.set()
    assert first.result(10)
    assert plugin.loop.do(lambda: list(plugin.arm.calls)).result(10) == []
    assert [type(error) for error in ended] == [Aborted]
    assert context.status is not None
    assert context.status[0] is grpc.StatusCode.CANCELLED


class Details:
    def __init__(self, method: str) -> None:
        self.method = method


def test_what_the_host_asks_for_beside_the_arm() -> None:
    stopped: list[bool] = []
    handlers = GoPlugin(lambda: stopped.append(True))
    health = handlers.service(Details("/grpc.health.v1.Health/Check"))
    assert health is not None
    assert health.unary_unary(b"", Context()) == b"\x08\x01"
    output = handlers.service(Details("/plugin.GRPCStdio/StreamStdio"))
    assert output is not None
    assert list(output.unary_stream(b"", Context())) == []
    context, shutdown = Context(), handlers.service(Details("/plugin.GRPCController/Shutdown"))
    assert shutdown is not None
    assert shutdown.unary_unary(b"", context) == b""
    assert stopped == []  # the answer comes first
    for call_back in context.at_end:
        call_back()
    assert stopped == [True]
    assert handlers.service(Details("/samebits.Arm/Build")) is None


def test_an_arm_that_cannot_be_made_says_so_at_every_call(plugin: Plugin) -> None:
    def arm() -> Arm:
        raise ImportError("no torch here")

    with pytest.raises(ProblemError, match="no torch here"):
        plugin.loop.do(lambda: serve._make(plugin.loop, arm)).result(10)
    for name, request in (
        ("Describe", wire.DescribeRequest()),
        ("Build", wire.BuildRequest()),
        ("Load", wire.LoadRequest()),
    ):
        assert plugin.refused(name, request) == (grpc.StatusCode.INTERNAL, [("PLUGIN_EXCEPTION", "")])


def test_an_arm_is_given_or_made(plugin: Plugin) -> None:
    for arm in (Fake(), Fake):
        plugin.loop.do(lambda arm=arm: serve._make(plugin.loop, arm)).result(10)
        assert isinstance(plugin.loop.arm, Fake)
        assert plugin.call("Describe", wire.DescribeRequest()).version == "fake"
