"""The arms of the reference: eager, graphed, and in double precision to measure errors by."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from samebits_reference import __version__, environment, families, profile, recorder, weights
from samebits_reference.banks import Spec
from samebits_reference.compile_session import CompileSession
from samebits_reference.exhaustion import choosing, churn, serving
from samebits_reference.families import Order
from samebits_reference.predict_session import PredictSession
from samebits_reference.recording_session import RecordingSession
from samebits_reference.seam_session import RestSession, WholeSession
from samebits_reference.session import FamilySession, Session
from samebits_reference.train_session import TrainSession
from samebits_reference.watchers import Tracer
from samebits_wire import arm_pb2 as wire
from samebits_wire.arm import Arm
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError
from samebits_wire.recording_pb2 import Setting

EAGER, GRAPH, DOUBLE = "reference-eager", "reference-graph", "reference-fp64"
WHOLE, REST, COMPILE = "reference-whole", "reference-rest", "reference-compile"
ARMS = (EAGER, GRAPH, DOUBLE, WHOLE, REST, COMPILE)
_NEED_GPU = (GRAPH, COMPILE)
_MODES: Mapping[str, Callable[[str, profile.Profile, families.Built], FamilySession]] = {
    "": PredictSession,
    "predict": PredictSession,
    "train": TrainSession,
}
# Arms that step in another way than all of a cell's step, eagerly or replayed. They do not train.
_SPECIAL_ARMS: Mapping[str, Callable[[str, profile.Profile, families.Built], FamilySession]] = {
    WHOLE: WholeSession,
    REST: RestSession,
    COMPILE: CompileSession,
}


class ReferenceArm(Arm):
    """One process of the reference. Build, or Load of a recording, fixes the arm; everything after it runs that arm."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._constructed: families.Constructed | None = None  # for the next Build

    def describe(self) -> wire.DescribeReply:
        """Say what is here."""
        devices = environment.devices()
        here = environment.describe(torch.device(devices[0]))
        return wire.DescribeReply(
            plugin="reference",
            version=__version__,
            arms=ARMS,
            devices=devices,
            environment=[Setting(key=key, value=value) for key, value in here.items()],
        )

    @serving
    @choosing
    def build(self, request: wire.BuildRequest, memory: Memory) -> wire.BuildReply:
        """Make a family, run it once, and learn what goes in, what comes out and what is read."""
        _check_arm(request.arm, request.device)
        mode = _MODES.get(request.mode)
        if mode is None:
            problem = Problem("UNKNOWN_MODE", f"this plugin does not {request.mode}", "mode", "known: predict, train")
            raise ProblemError(problem, Kind.UNIMPLEMENTED)
        if request.arm in _SPECIAL_ARMS:
            if request.mode == "train":
                problem = Problem("UNKNOWN_ARM", f"{request.arm} does not train", "arm", f"take {EAGER} or {GRAPH}")
                raise ProblemError(problem, Kind.UNIMPLEMENTED)
            mode = _SPECIAL_ARMS[request.arm]
        chosen = profile.find(request.profile)
        constructed = self._constructed
        self._drop()
        chosen.apply()
        order = Order(
            family=request.family,
            size=request.size,
            task=request.task,
            seed=request.seed,
            precision="fp64" if request.arm == DOUBLE else request.precision or "fp32",
            device=request.device,
            imgsz=request.imgsz,
            batch=request.batch or 1,
            fresh_weights=request.fresh_weights,
            weights_file=request.weights_file,
        )
        if request.construct_only:
            made = self._constructed = families.construct(order)
            return wire.BuildReply(task=made.order.task, size=made.order.size, imgsz=made.order.imgsz)
        built = families.build(order, constructed)
        chosen.verify()
        session = mode(request.arm, chosen, built)
        if built.given is not None:
            built.load(built.given, session.required)
        session.weights_file = weights.encode(built.weights())
        self._session = session
        return wire.BuildReply(
            inputs=_messages(session.inputs),
            weights_length=len(session.weights_file),
            task=built.order.task,
            size=built.order.size,
            imgsz=built.order.imgsz,
            outputs=_messages(session.every_output),
            checkpoint_length=session.checkpoint_length,
            segment=built.cell.segment,
            rest=built.has_rest,
            others=[
                wire.Other(family=family, imgsz=imgsz)
                for family, imgsz in built.cell.others
                if (family, imgsz) != (built.cell.family, built.order.imgsz)
            ],
        )

    @serving
    @choosing
    def record(self, request: wire.RecordRequest, memory: Memory) -> wire.RecordReply:
        """Record one eager step on given inputs."""
        session = self._built()
        session.profile.verify()
        session.taken = None
        session.taken = session.record(
            memory,
            request.inputs,
            recorder.Named(session.profile.name, session.profile.settings(), environment.describe(session.built.device)),
        )
        session.weights_file = weights.encode(session.taken.weights)
        return wire.RecordReply(
            recording_length=len(session.taken.data),
            weights_length=len(session.weights_file),
            outputs=_messages([Spec.of(name, tensor) for name, tensor in session.taken.outputs]),
        )

    @serving
    def export(self, request: wire.ExportRequest, memory: Memory) -> None:
        """Copy the recording, the weights of the latest Build, Load or Record, or the state as it is now."""
        session = self._built()
        if request.what == wire.ExportRequest.WHAT_RECORDING:
            if session.taken is None:
                raise _wrong_order("NOT_RECORDED", "nothing was recorded since Build")
            data = session.taken.data
        elif request.what == wire.ExportRequest.WHAT_WEIGHTS:
            if session.weights_file is None:
                session.weights_file = weights.encode(session.built.weights())
            data = session.weights_file
        elif request.what == wire.ExportRequest.WHAT_CHECKPOINT:
            data = session.checkpoint()
        else:
            raise ProblemError(Problem("UNKNOWN_EXPORT", f"there is nothing to export as {request.what}", "what"))
        if request.region.length != len(data):
            what = f"it has {request.region.length} bytes, the export {len(data)}"
            raise ProblemError(Problem("REGION", what, "region"))
        memory.view(request.region)[:] = data

    @serving
    def load(self, request: wire.LoadRequest, memory: Memory) -> wire.LoadReply:
        """Take weights or a checkpoint after Build, or a recording with its weights.

        Options are switches of native arms and change nothing here.
        """
        if request.recording.length:
            return self._load_recording(request, memory)
        session = self._built()
        problems = []
        if request.arm not in ("", session.arm):
            problems.append(Problem("WRONG_ARM", f"{session.arm} was built, not {request.arm}", "arm"))
        if request.device and request.device != session.built.order.device:
            what = f"the family is on {session.built.order.device}, not on {request.device}"
            problems.append(Problem("WRONG_DEVICE", what, "device"))
        if problems:
            raise ProblemError(problems)
        # Copies: what was checked cannot change afterwards.
        session.load(_bytes(memory, request.weights), _bytes(memory, request.checkpoint))
        session.weights_file = session.taken = None
        session.stats = wire.StatsReply()
        return wire.LoadReply(
            inputs=_messages(session.inputs),
            outputs=_messages(session.outputs),
            peak_bytes=session.peak_bytes(),
            checkpoint_length=session.checkpoint_length,
        )

    def _load_recording(self, request: wire.LoadRequest, memory: Memory) -> wire.LoadReply:
        if isinstance(self._session, FamilySession):
            detail = "load it into a process of its own"
            raise ProblemError(Problem("UNEXPECTED_RECORDING", "this process has built a family", "recording", detail))
        _check_arm(request.arm, request.device)
        if request.arm in _SPECIAL_ARMS:
            problem = Problem("UNEXPECTED_RECORDING", f"{request.arm} runs what Build made", "recording")
            raise ProblemError(problem)
        if request.checkpoint.length:
            problem = Problem("UNEXPECTED_CHECKPOINT", "a recording starts from weights", "checkpoint")
            raise ProblemError(problem)
        self._drop()
        session = RecordingSession.load(
            request.arm,
            families.named_device(request.device),
            _bytes(memory, request.recording),
            _bytes(memory, request.weights),
            double=request.arm == DOUBLE,
        )
        self._session = session
        return wire.LoadReply(
            inputs=_messages(session.inputs),
            outputs=_messages(session.outputs),
            recording_digest=session.digest,
            peak_bytes=session.peak_bytes(),
        )

    @serving
    @choosing
    def prepare(self, request: wire.PrepareRequest, memory: Memory) -> wire.PrepareReply:
        """Resolve the banks, and capture if this arm replays."""
        session = self._ready()
        if request.cuda_graph and session.arm != GRAPH:
            raise ProblemError(Problem("NO_GRAPH", f"{session.arm} runs eagerly", "cuda_graph", f"take {GRAPH}"))
        session.banks = 0
        session.prepare(memory, request)
        session.banks = len(request.inputs)
        if isinstance(session, FamilySession):
            session.weights_file = None
        graphs = session.captured()
        session.stats.captures += len(graphs)
        nodes = sum(graph.nodes for graph in graphs)
        return wire.PrepareReply(captured=bool(graphs), nodes=nodes, peak_bytes=session.peak_bytes())

    @serving
    @choosing
    def step(self, input_bank: int, output_bank: int) -> None:
        """Run one step from a bank to a bank."""
        session = self._prepared(input_bank)
        session.give(input_bank)
        session.run()
        session.take(output_bank)
        session.wait()

    @serving
    def disturb(self, request: wire.DisturbRequest) -> None:
        """Poison what the next replay must write, and leave freed memory full of NaN behind."""
        session = self._ready()
        if request.poison_outputs:
            session.poison()
        if request.churn:
            churn(session.device)
        session.wait()

    @serving
    @choosing
    def situate(self, request: wire.SituateRequest) -> wire.SituateReply:
        """Do what may happen between steps."""
        facts = self._ready().situate(request.situation, request.seed)
        return wire.SituateReply(facts=[Setting(key=key, value=value) for key, value in facts.items()])

    @serving
    def trace(self, request: wire.TraceRequest, memory: Memory) -> wire.TraceReply:
        """Run one eager step and digest everything it makes."""
        session = self._prepared(request.input_bank)
        session.give(request.input_bank)
        tracer = Tracer((request.operation, request.result) if request.want else None)
        session.watch(tracer)
        session.stats.eager_steps += 1
        session.stats.launches += tracer.count
        reply = wire.TraceReply(
            operations=[
                wire.OperationTrace(operation=index, digests=digests) for index, digests in enumerate(tracer.digests)
            ]
        )
        if request.want:
            if tracer.wanted is None:
                what = f"the step has no result {request.result} of operation {request.operation}"
                raise ProblemError(Problem("NO_SUCH_RESULT", what, "want"))
            _hand_over(memory, request.region, tracer.wanted)
            reply.wanted.CopyFrom(Spec.of("", tracer.wanted).message())
        return reply

    @serving
    def measure(self, request: wire.MeasureRequest) -> wire.MeasureReply:
        """Time steps on inputs that are on the device already. In mode train the state moves on."""
        session = self._prepared(request.input_bank)
        session.give(request.input_bank)
        milliseconds = []
        for iteration in range(request.warmup + request.iterations):
            session.wait()
            began = time.perf_counter_ns()
            session.run()
            session.wait()
            if iteration >= request.warmup:
                milliseconds.append((time.perf_counter_ns() - began) / 1e6)
        return wire.MeasureReply(milliseconds=milliseconds)

    @serving
    def process(self, request: wire.ProcessRequest, memory: Memory) -> wire.ProcessReply:
        """Do a stage of what lies around steps."""
        return self._built().process(request, memory)

    def stats(self) -> wire.StatsReply:
        """Count what was done since Load."""
        if self._session is None:
            return wire.StatsReply()
        session = self._session
        stats = session.stats
        stats.peak_bytes, stats.reserved_bytes = session.peak_bytes(), session.reserved_bytes()
        stats.allocated_bytes, stats.generator = session.allocated_bytes(), session.generator()
        stats.nodes_by_kind.clear()
        for graph in session.captured():
            for kind, number in graph.kinds.items():
                stats.nodes_by_kind[kind] += number
        return stats

    def close(self) -> None:
        """Free the family."""
        self._drop()

    def _built(self) -> FamilySession:
        if not isinstance(self._session, FamilySession):
            raise _wrong_order("NOT_BUILT", "Build comes first")
        return self._session

    def _ready(self) -> Session:
        return self._built() if self._session is None else self._session

    def _prepared(self, input_bank: int) -> Session:
        session = self._ready()
        if not session.banks:
            raise _wrong_order("NOT_PREPARED", "Prepare comes first")
        if input_bank >= session.banks:
            what = f"there is no input bank {input_bank}: Prepare named {session.banks}"
            raise ProblemError(Problem("NO_SUCH_BANK", what, "input_bank"))
        return session

    def _drop(self) -> None:
        if self._session is not None:
            self._session.end()
        self._session = self._constructed = None
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def _check_arm(arm: str, device: str) -> None:
    if arm not in ARMS:
        known = f"known: {', '.join(ARMS)}"
        raise ProblemError(Problem("UNKNOWN_ARM", f"no arm is named {arm!r}", "arm", known))
    if arm in _NEED_GPU and not device.startswith("cuda"):
        detail = "name cuda:N, or take reference-eager"
        raise ProblemError(Problem("NO_CUDA", f"{arm} needs a CUDA device, not {device!r}", "device", detail))


def _bytes(memory: Memory, region: wire.Region) -> bytes:
    return bytes(memory.view(region)) if region.length else b""


def _hand_over(memory: Memory, region: wire.Region, tensor: torch.Tensor) -> None:
    length = tensor.numel() * tensor.element_size()
    if region.length < length:
        raise ProblemError(Problem("REGION", f"it has {region.length} bytes, the result {length}", "region"))
    exact = wire.Region(offset=region.offset, length=length)
    memory.tensor(exact, tensor.dtype, tensor.shape).copy_(tensor)


def _messages(specs: Sequence[Spec]) -> list[wire.TensorSpec]:
    return [spec.message() for spec in specs]


def _wrong_order(reason: str, what: str) -> ProblemError:
    return ProblemError(Problem(reason, what), Kind.WRONG_ORDER)
