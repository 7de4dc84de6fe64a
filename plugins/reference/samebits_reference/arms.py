"""The arms of the reference: eager, graphed, and in double precision to measure errors by."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

import torch

from samebits_reference import __version__, banks, environment, families, graphs, profile, recorder, weights
from samebits_reference.banks import Spec
from samebits_reference.exhaustion import serving
from samebits_reference.families import Order, flatten
from samebits_reference.session import Session, start
from samebits_reference.watchers import Tracer
from samebits_wire import arm_pb2 as wire
from samebits_wire.arm import Arm
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError
from samebits_wire.recording_pb2 import Setting

EAGER, GRAPH, DOUBLE = "reference-eager", "reference-graph", "reference-fp64"
ARMS = (EAGER, GRAPH, DOUBLE)


class ReferenceArm(Arm):
    """One process of the reference. Build fixes the arm; everything after it runs that arm."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._stats = wire.StatsReply()

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
    def build(self, request: wire.BuildRequest, memory: Memory) -> wire.BuildReply:
        """Make a family, run it once, and learn what goes in, what comes out and what is read."""
        if request.arm not in ARMS:
            known = f"known: {', '.join(ARMS)}"
            raise ProblemError(Problem("UNKNOWN_ARM", f"no arm is named {request.arm!r}", "arm", known))
        if request.mode not in ("", "predict"):
            problem = Problem("UNKNOWN_MODE", f"this plugin does not {request.mode}", "mode", "known: predict")
            raise ProblemError(problem, Kind.UNIMPLEMENTED)
        chosen = profile.find(request.profile)
        if request.arm == GRAPH and not request.device.startswith("cuda"):
            detail = "build it on cuda:N, or take reference-eager"
            raise ProblemError(Problem("NO_CUDA", f"{GRAPH} needs a CUDA device, not {request.device!r}", "device", detail))
        self._drop()
        chosen.apply()
        built = families.build(
            Order(
                family=request.family,
                size=request.size,
                task=request.task,
                seed=request.seed,
                precision="fp64" if request.arm == DOUBLE else request.precision or "fp32",
                device=request.device,
                imgsz=request.imgsz,
                batch=request.batch or 1,
                fresh_weights=request.fresh_weights,
            )
        )
        chosen.verify()
        session = start(request.arm, chosen, built)
        session.weights_file = weights.encode(built.weights())
        self._session = session
        self._stats = wire.StatsReply()
        return wire.BuildReply(
            inputs=_messages(session.inputs),
            weights_length=len(session.weights_file),
            task=built.order.task,
            size=built.order.size,
            imgsz=built.order.imgsz,
        )

    @serving
    def record(self, request: wire.RecordRequest, memory: Memory) -> wire.RecordReply:
        """Record one eager step on given inputs."""
        session = self._built()
        session.profile.verify()
        _copy(banks.place(memory, request.inputs, session.inputs, "inputs"), [session.images])
        named = (session.profile.name, session.profile.settings())
        session.taken = None
        session.taken = recorder.record(session.built, session.images, named, environment.describe(session.built.device))
        session.weights_file = weights.encode(session.taken.weights)
        return wire.RecordReply(
            recording_length=len(session.taken.data),
            weights_length=len(session.weights_file),
            outputs=_messages([Spec.of(name, tensor) for name, tensor in session.taken.outputs]),
        )

    @serving
    def export(self, request: wire.ExportRequest, memory: Memory) -> None:
        """Copy the recording, or the weights of the latest Build, Load or Record."""
        session = self._built()
        if request.what == wire.ExportRequest.WHAT_RECORDING:
            if session.taken is None:
                raise _wrong_order("NOT_RECORDED", "nothing was recorded since Build")
            data = session.taken.data
        elif request.what == wire.ExportRequest.WHAT_WEIGHTS:
            if session.weights_file is None:
                session.weights_file = weights.encode(session.built.weights())
            data = session.weights_file
        else:
            raise ProblemError(Problem("UNKNOWN_EXPORT", f"there is nothing to export as {request.what}", "what"))
        if request.region.length != len(data):
            what = f"it has {request.region.length} bytes, the export {len(data)}"
            raise ProblemError(Problem("REGION", what, "region"))
        memory.view(request.region)[:] = data

    @serving
    def load(self, request: wire.LoadRequest, memory: Memory) -> wire.LoadReply:
        """Take weights. Options are switches of native arms and change nothing here."""
        session = self._built()
        problems = []
        if request.recording.length:
            problems.append(Problem("UNEXPECTED_RECORDING", "a reference runs families, not recordings", "recording"))
        if request.arm not in ("", session.arm):
            problems.append(Problem("WRONG_ARM", f"{session.arm} was built, not {request.arm}", "arm"))
        if request.device and request.device != session.built.order.device:
            what = f"the family is on {session.built.order.device}, not on {request.device}"
            problems.append(Problem("WRONG_DEVICE", what, "device"))
        if problems:
            raise ProblemError(problems)
        # A copy: what was checked cannot change afterwards.
        given = weights.decode(bytes(memory.view(request.weights)))
        session.built.load(given, session.required)
        session.weights_file = session.taken = None
        self._stats = wire.StatsReply()
        return wire.LoadReply(
            inputs=_messages(session.inputs), outputs=_messages(session.outputs), peak_bytes=session.peak_bytes()
        )

    @serving
    def prepare(self, request: wire.PrepareRequest, memory: Memory) -> wire.PrepareReply:
        """Resolve the banks, and capture if this arm replays."""
        session = self._built()
        if request.cuda_graph and session.arm != GRAPH:
            raise ProblemError(Problem("NO_GRAPH", f"{session.arm} runs eagerly", "cuda_graph", f"take {GRAPH}"))
        session.input_banks = [
            banks.place(memory, bank, session.inputs, f"inputs[{index}]") for index, bank in enumerate(request.inputs)
        ]
        session.output_banks = [
            banks.place(memory, bank, session.outputs, f"outputs[{index}]") for index, bank in enumerate(request.outputs)
        ]
        session.weights_file = None
        if session.graph is not None:
            session.graph.release()
            session.graph = None
        if request.cuda_graph:
            session.profile.verify()
            session.graph = graphs.Graph(lambda: session.built.step(session.images))
            self._stats.captures += 1
        nodes = session.graph.nodes if session.graph else 0
        return wire.PrepareReply(captured=session.graph is not None, nodes=nodes, peak_bytes=session.peak_bytes())

    @serving
    def step(self, input_bank: int, output_bank: int) -> None:
        """Run one step from a bank to a bank."""
        session = self._prepared(input_bank)
        _copy(session.input_banks[input_bank], [session.images])
        outputs = self._run(session)
        if [Spec.of(name, tensor) for name, tensor in outputs] != session.outputs:
            raise ProblemError(Problem("OUTPUTS_CHANGED", "this step gave other outputs than the first", "outputs"))
        _copy([tensor for _, tensor in outputs], session.output_banks[output_bank])
        session.wait()

    @serving
    def disturb(self, request: wire.DisturbRequest) -> None:
        """Poison what the next replay must write, and leave freed memory full of NaN behind."""
        session = self._built()
        if request.poison_outputs and session.graph is not None:
            session.graph.poison(session.images)
        if request.churn:
            _churn(session.built.device)
        session.wait()

    @serving
    def trace(self, request: wire.TraceRequest, memory: Memory) -> wire.TraceReply:
        """Run one eager step and digest everything it makes."""
        session = self._prepared(request.input_bank)
        _copy(session.input_banks[request.input_bank], [session.images])
        tracer = Tracer((request.operation, request.result) if request.want else None)
        with tracer:
            session.built.step(session.images)
        self._stats.eager_steps += 1
        self._stats.launches += tracer.count
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
        """Time steps on inputs that are on the device already."""
        session = self._prepared(request.input_bank)
        _copy(session.input_banks[request.input_bank], [session.images])
        milliseconds = []
        for iteration in range(request.warmup + request.iterations):
            session.wait()
            began = time.perf_counter_ns()
            self._run(session)
            session.wait()
            if iteration >= request.warmup:
                milliseconds.append((time.perf_counter_ns() - began) / 1e6)
        return wire.MeasureReply(milliseconds=milliseconds)

    def stats(self) -> wire.StatsReply:
        """Count what was done since Load."""
        if self._session is not None:
            self._stats.peak_bytes = self._session.peak_bytes()
        return self._stats

    def close(self) -> None:
        """Free the family."""
        self._drop()

    def _run(self, session: Session) -> list[tuple[str, torch.Tensor]]:
        if session.graph is not None:
            session.graph.replay()
            self._stats.replays += 1
            self._stats.launches += session.graph.nodes
            return session.graph.outputs
        outputs = list(flatten(session.built.step(session.images)))
        self._stats.eager_steps += 1
        self._stats.launches += session.operations
        return outputs

    def _built(self) -> Session:
        if self._session is None:
            raise _wrong_order("NOT_BUILT", "Build comes first")
        return self._session

    def _prepared(self, input_bank: int) -> Session:
        session = self._built()
        if not session.input_banks:
            raise _wrong_order("NOT_PREPARED", "Prepare comes first")
        if input_bank >= len(session.input_banks):
            what = f"there is no input bank {input_bank}: Prepare named {len(session.input_banks)}"
            raise ProblemError(Problem("NO_SUCH_BANK", what, "input_bank"))
        return session

    def _drop(self) -> None:
        if self._session is not None and self._session.graph is not None:
            self._session.graph.release()
        self._session = None
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def _copy(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def _hand_over(memory: Memory, region: wire.Region, tensor: torch.Tensor) -> None:
    length = tensor.numel() * tensor.element_size()
    if region.length < length:
        raise ProblemError(Problem("REGION", f"it has {region.length} bytes, the result {length}", "region"))
    exact = wire.Region(offset=region.offset, length=length)
    memory.tensor(exact, tensor.dtype, tensor.shape).copy_(tensor)


def _churn(device: torch.device) -> None:
    """Allocate, fill and free blocks of many sizes, in an order that leaves holes."""
    blocks = [torch.full((1 << size,), 0xFF, dtype=torch.uint8, device=device) for size in range(9, 27)]
    blocks += [torch.full((size * 1000 + 513,), 0xFF, dtype=torch.uint8, device=device) for size in range(1, 200)]
    del blocks[::2]
    blocks.append(torch.full((1 << 20,), 0xFF, dtype=torch.uint8, device=device))
    del blocks
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


def _messages(specs: Sequence[Spec]) -> list[wire.TensorSpec]:
    return [spec.message() for spec in specs]


def _wrong_order(reason: str, what: str) -> ProblemError:
    return ProblemError(Problem(reason, what), Kind.WRONG_ORDER)
