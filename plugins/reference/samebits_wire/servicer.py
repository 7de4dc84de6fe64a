"""The gRPC side of a plugin: brings every call to the arm's thread and its problems to the host."""

# ruff: noqa: D102, N802 (the .proto names and documents the methods)

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from samebits_wire import arm_pb2 as wire
from samebits_wire import arm_pb2_grpc
from samebits_wire.loop import Loop
from samebits_wire.problems import Kind, Problem, ProblemError, encode

PROTOCOL = 1  # of the wire
_TRAILER = "samebits-problems-bin"
_TRAILER_BYTES = 6 << 10  # gRPC refuses large headers


class Servicer(arm_pb2_grpc.ArmServicer):
    """Brings every call to the arm's thread, and its problems to the host."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._memory = loop.memory

    def Describe(self, request: wire.DescribeRequest, context: grpc.ServicerContext) -> wire.DescribeReply:
        reply = self._answer(context, lambda: self._loop.arm.describe())
        reply.protocol = PROTOCOL
        return reply

    def Attach(self, request: wire.AttachRequest, context: grpc.ServicerContext) -> wire.AttachReply:
        try:  # needs no arm: the memory may grow while a step runs
            self._memory.attach(request.region.offset, request.region.length)
        except ProblemError as error:
            _refuse(context, error)
        return wire.AttachReply()

    def Build(self, request: wire.BuildRequest, context: grpc.ServicerContext) -> wire.BuildReply:
        return self._answer(context, lambda: self._loop.arm.build(request, self._memory))

    def Record(self, request: wire.RecordRequest, context: grpc.ServicerContext) -> wire.RecordReply:
        def record() -> wire.RecordReply:
            self._check({"inputs": request.inputs})
            return self._loop.arm.record(request, self._memory)

        return self._answer(context, record)

    def Export(self, request: wire.ExportRequest, context: grpc.ServicerContext) -> wire.ExportReply:
        self._answer(context, lambda: self._loop.arm.export(request, self._memory))
        return wire.ExportReply()

    def Load(self, request: wire.LoadRequest, context: grpc.ServicerContext) -> wire.LoadReply:
        def load() -> wire.LoadReply:
            self._loop.inputs = self._loop.outputs = 0  # the banks belonged to what was loaded before
            return self._loop.arm.load(request, self._memory)

        return self._answer(context, load)

    def Prepare(self, request: wire.PrepareRequest, context: grpc.ServicerContext) -> wire.PrepareReply:
        def prepare() -> wire.PrepareReply:
            self._loop.inputs = self._loop.outputs = 0
            have = (len(request.inputs), len(request.outputs))
            if not all(have):
                raise ProblemError(
                    Problem("BANK", f"Prepare needs a bank of inputs and one of outputs, it has {have[0]} and {have[1]}")
                )
            banks = {f"inputs[{i}]": bank for i, bank in enumerate(request.inputs)}
            self._check(banks | {f"outputs[{i}]": bank for i, bank in enumerate(request.outputs)})
            reply = self._loop.arm.prepare(request, self._memory)
            self._loop.inputs, self._loop.outputs = have
            return reply

        return self._answer(context, prepare)

    def Disturb(self, request: wire.DisturbRequest, context: grpc.ServicerContext) -> wire.DisturbReply:
        self._answer(context, lambda: self._loop.arm.disturb(request))
        return wire.DisturbReply()

    def Situate(self, request: wire.SituateRequest, context: grpc.ServicerContext) -> wire.SituateReply:
        def situate() -> wire.SituateReply:
            if not self._loop.inputs:
                raise ProblemError(Problem("WRONG_ORDER", "Situate comes after Prepare"), Kind.WRONG_ORDER)
            return self._loop.arm.situate(request)

        return self._answer(context, situate)

    def Trace(self, request: wire.TraceRequest, context: grpc.ServicerContext) -> wire.TraceReply:
        def trace() -> wire.TraceReply:
            self._loop.check_bank(request.input_bank, self._loop.inputs, "input")
            return self._loop.arm.trace(request, self._memory)

        return self._answer(context, trace)

    def Measure(self, request: wire.MeasureRequest, context: grpc.ServicerContext) -> wire.MeasureReply:
        def measure() -> wire.MeasureReply:
            self._loop.check_bank(request.input_bank, self._loop.inputs, "input")
            return self._loop.arm.measure(request)

        return self._answer(context, measure)

    def Stats(self, request: wire.StatsRequest, context: grpc.ServicerContext) -> wire.StatsReply:
        return self._answer(context, lambda: self._loop.arm.stats())

    def Process(self, request: wire.ProcessRequest, context: grpc.ServicerContext) -> wire.ProcessReply:
        def process() -> wire.ProcessReply:
            self._check({"bank": request.bank})
            return self._loop.arm.process(request, self._memory)

        return self._answer(context, process)

    def _answer(self, context: grpc.ServicerContext, work: Callable[[], Any]) -> Any:
        future = self._loop.do(work)
        context.add_callback(future.cancel)  # the caller is gone: do not begin
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            context.abort(grpc.StatusCode.CANCELLED, "its caller is gone")
        except ProblemError as error:
            _refuse(context, error)

    def _check(self, banks: dict[str, wire.Bank]) -> None:
        """See that every tensor of these banks has a place of its size."""
        problems: list[Problem] = []
        for path, bank in banks.items():
            for tensor in bank.tensors:
                try:
                    self._memory.check(tensor)
                except ProblemError as error:
                    where = f"{path}/{tensor.spec.name}"
                    problems += (dataclasses.replace(problem, path=where) for problem in error.problems)
        if problems:
            raise ProblemError(problems)


def _refuse(context: grpc.ServicerContext, error: ProblemError) -> None:
    context.set_trailing_metadata(((_TRAILER, encode(error.problems, _TRAILER_BYTES)),))
    context.abort(_STATUS[error.kind], error.problems[0].reason)


_STATUS = {kind: getattr(grpc.StatusCode, kind.value) for kind in Kind}


class GoPlugin(grpc.GenericRpcHandler):  # type: ignore[misc]
    """What go-plugin's host asks for besides the arm. The messages are so small that they are written by hand."""

    _EMPTY = b""
    _SERVING = b"\x08\x01"  # HealthCheckResponse{status: SERVING}

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        match call.method:
            case "/grpc.health.v1.Health/Check":
                return grpc.unary_unary_rpc_method_handler(lambda request, context: self._SERVING)
            case "/plugin.GRPCController/Shutdown":
                return grpc.unary_unary_rpc_method_handler(self._shutdown)
            case "/plugin.GRPCStdio/StreamStdio":
                return grpc.unary_stream_rpc_method_handler(self._no_output)
        return None

    def _shutdown(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        context.add_callback(self._stop)  # once the answer is out
        return self._EMPTY

    def _no_output(self, request: bytes, context: grpc.ServicerContext) -> Iterable[bytes]:
        """End at once: the host reads our standard output and error themselves."""
        return iter(())
