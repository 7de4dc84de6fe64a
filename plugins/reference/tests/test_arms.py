from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, built, recorded, same_bits
from interpreter import Interpreter

from samebits_reference import families, weights
from samebits_reference.arms import COMPILE, DOUBLE, EAGER, GRAPH, REST, WHOLE, ReferenceArm
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import flatten
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import Kind, ProblemError

RECORDING, WEIGHTS = wire.ExportRequest.WHAT_RECORDING, wire.ExportRequest.WHAT_WEIGHTS


def order(arm: str = EAGER, family: str = "resnet", **more: object) -> wire.BuildRequest:
    return wire.BuildRequest(**{"family": family, "arm": arm, "precision": "fp32", "device": "cpu", "imgsz": 64} | more)


class Session:
    """A host's dealings with one arm."""

    def __init__(self, host: HostMemory, request: wire.BuildRequest) -> None:
        self.host, self.arm = host, ReferenceArm()
        self.built = self.arm.build(request, host.memory)

    def export(self, what: int, length: int) -> bytes:
        place = self.host.region(length)
        self.arm.export(wire.ExportRequest(what=what, region=place), self.host.memory)
        return bytes(self.host.memory.view(place))

    def load(self, data: bytes, **more: object) -> wire.LoadReply:
        return self.arm.load(wire.LoadRequest(weights=self.host.put(data), **more), self.host.memory)

    def prepare(self, outputs: list[wire.TensorSpec], inputs: int = 2) -> None:
        self.inputs = [self.host.bank(self.built.inputs) for _ in range(inputs)]
        self.outputs = [self.host.bank(outputs) for _ in range(2)]
        for seed, bank in enumerate(self.inputs):
            (images,) = self.host.tensors(bank)
            images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
        self.arm.prepare(wire.PrepareRequest(inputs=self.inputs, outputs=self.outputs), self.host.memory)


@pytest.fixture
def session(host: HostMemory) -> Session:
    opened = Session(host, order())
    opened.prepare(opened.load(opened.export(WEIGHTS, opened.built.weights_length)).outputs)
    return opened


def refusal(call: object, *args: object) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        call(*args)  # type: ignore[operator]
    return caught.value


def reasons(error: ProblemError) -> list[str]:
    return [problem.reason for problem in error.problems]


def test_describe_names_arms_devices_and_versions() -> None:
    reply = ReferenceArm().describe()
    assert list(reply.arms) == [EAGER, GRAPH, DOUBLE, WHOLE, REST, COMPILE]
    assert "cpu" in reply.devices
    environment = {setting.key: setting.value for setting in reply.environment}
    assert environment["torch"] == torch.__version__
    assert {"libreyolo", "python"} <= environment.keys()
    assert list(environment) == sorted(environment)


def test_what_was_constructed_before_is_built(host: HostMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[families.Order] = []
    construct = families.construct
    monkeypatch.setattr(families, "construct", lambda order: made.append(order) or construct(order))
    plain = Session(host, order())
    early = Session(host, order(construct_only=True))
    assert (early.built.size, early.built.imgsz, len(early.built.inputs)) == ("18", 64, 0)
    assert reasons(refusal(early.arm.export, wire.ExportRequest(what=WEIGHTS), host.memory)) == ["NOT_BUILT"]
    early.built = early.arm.build(order(), host.memory)
    assert len(made) == 2
    length = plain.built.weights_length
    assert early.export(WEIGHTS, length) == plain.export(WEIGHTS, length)
    early.arm.build(order(seed=1, construct_only=True), host.memory)
    early.arm.build(order(), host.memory)  # another one after all
    assert len(made) == 4
    assert early.export(WEIGHTS, length) == plain.export(WEIGHTS, length)


def test_what_a_build_took_can_be_asked_before_anything_else(host: HostMemory) -> None:
    stats = Session(host, order()).arm.stats()
    assert (stats.peak_bytes, stats.reserved_bytes, stats.eager_steps) == (0, 0, 0)  # on the CPU nobody counts memory


def test_steps_from_bank_to_bank_are_eager_steps(session: Session) -> None:
    for bank in (0, 1, 0):
        session.arm.step(bank, bank)
        (images,), (output,) = session.host.tensors(session.inputs[bank]), session.host.tensors(session.outputs[bank])
        ((_, expected),) = flatten(built("resnet").step(images.clone()))
        assert same_bits(output, expected)
    stats = session.arm.stats()
    assert (stats.eager_steps, stats.captures, stats.replays, stats.fallbacks) == (3, 0, 0, 0)
    assert stats.launches == 3 * 90


def test_another_seeds_weights_are_run_after_load(host: HostMemory) -> None:
    opened, other = Session(host, order(seed=5)), Session(host, order())
    opened.prepare(opened.load(other.export(WEIGHTS, other.built.weights_length)).outputs)
    opened.arm.step(0, 0)
    (images,), (output,) = host.tensors(opened.inputs[0]), host.tensors(opened.outputs[0])
    ((_, expected),) = flatten(built("resnet").step(images.clone()))
    assert same_bits(output, expected)
    assert opened.export(WEIGHTS, other.built.weights_length) == other.export(WEIGHTS, other.built.weights_length)


def test_record_and_export_give_what_an_interpreter_can_run(session: Session) -> None:
    reply = session.arm.record(wire.RecordRequest(inputs=session.inputs[0]), session.host.memory)
    data = session.export(RECORDING, reply.recording_length)
    again = session.arm.record(wire.RecordRequest(inputs=session.inputs[1]), session.host.memory)
    assert session.export(RECORDING, again.recording_length) == data
    assert pb.Recording.FromString(data).header.environment
    read = weights.decode(session.export(WEIGHTS, again.weights_length))
    assert read.keys() == recorded("resnet").weights.keys()
    session.arm.step(1, 0)
    (images,), (output,) = session.host.tensors(session.inputs[1]), session.host.tensors(session.outputs[0])
    assert same_bits(Interpreter(data, read).run(images)["output"], output)
    assert [spec.name for spec in reply.outputs] == ["output"]
    session.load(session.export(WEIGHTS, again.weights_length))  # what a recording reads is enough for a reference


def test_trace_digests_every_result_in_the_order_of_the_recording(session: Session) -> None:
    reply = session.arm.record(wire.RecordRequest(inputs=session.inputs[0]), session.host.memory)
    recording = pb.Recording.FromString(session.export(RECORDING, reply.recording_length))
    region = session.host.region(1 << 20)
    last = len(recording.operations) - 1
    trace = session.arm.trace(wire.TraceRequest(want=True, operation=last, region=region), session.host.memory)
    assert [operation.operation for operation in trace.operations] == list(range(len(recording.operations)))
    for recorded_operation, traced in zip(recording.operations, trace.operations, strict=True):
        assert len(traced.digests) == len(recorded_operation.results)
        for number, digest in enumerate(traced.digests):
            undefined = recorded_operation.name.startswith("aten::empty") or (
                recorded_operation.name == "aten::native_batch_norm" and number > 0
            )
            assert len(digest) == (0 if undefined else 64), recorded_operation.name
    session.arm.step(0, 0)
    (output,) = session.host.tensors(session.outputs[0])
    assert trace.operations[last].digests[0] == digest_tensor(output)
    assert list(trace.wanted.sizes) == [1, 1000]
    exact = wire.Region(offset=region.offset, length=4000)
    assert same_bits(session.host.memory.tensor(exact, "float32", [1, 1000]), output)


def test_measure_gives_one_time_a_step(session: Session) -> None:
    times = session.arm.measure(wire.MeasureRequest(warmup=1, iterations=3)).milliseconds
    assert len(times) == 3
    assert all(time > 0 for time in times)


def test_disturbed_memory_changes_nothing(session: Session) -> None:
    session.arm.step(0, 0)
    session.arm.disturb(wire.DisturbRequest(poison_outputs=True, churn=True))
    session.arm.step(0, 1)
    (first,), (second,) = session.host.tensors(session.outputs[0]), session.host.tensors(session.outputs[1])
    assert same_bits(first, second)


def test_the_double_arm_takes_single_weights_and_gives_doubles(host: HostMemory) -> None:
    single, double = Session(host, order()), Session(host, order(DOUBLE))
    loaded = double.load(single.export(WEIGHTS, single.built.weights_length))
    assert [spec.dtype for spec in loaded.outputs] == [pb.DTYPE_FLOAT64]
    double.prepare(loaded.outputs)
    double.arm.step(0, 0)
    (images,), (output,) = host.tensors(double.inputs[0]), host.tensors(double.outputs[0])
    ((_, expected),) = flatten(built("resnet").step(images.clone()))
    error = (output - expected).abs().max()
    assert 0 < error < 1e-4


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (order("native-eager"), "UNKNOWN_ARM"),
        (order(profile="exact-9"), "UNKNOWN_PROFILE"),
        (order(GRAPH), "NO_CUDA"),
        (order(family="nobody"), "UNKNOWN_FAMILY"),
        (order(batch=-3), "BAD_BATCH"),
    ],
)
def test_bad_builds_are_refused_and_the_arm_goes_on(host: HostMemory, request_: wire.BuildRequest, reason: str) -> None:
    arm = ReferenceArm()
    error = refusal(arm.build, request_, host.memory)
    assert reasons(error) == [reason]
    assert error.kind is Kind.BAD_INPUT
    arm.build(order(), host.memory)


def test_a_size_that_the_family_cannot_run_is_refused(host: HostMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    from samebits_reference.families import Built

    def fail(_self: object, _images: object) -> None:
        raise RuntimeError("Sizes of tensors must match\nsecond line")

    monkeypatch.setattr(Built, "step", fail)
    error = refusal(ReferenceArm().build, order(imgsz=65), host.memory)
    assert reasons(error) == ["BAD_IMAGE_SIZE"]
    assert "Sizes of tensors must match" in error.problems[0].summary


def test_calls_out_of_order_are_refused(host: HostMemory) -> None:
    arm = ReferenceArm()
    for call, args in [
        (arm.record, (wire.RecordRequest(), host.memory)),
        (arm.load, (wire.LoadRequest(), host.memory)),
        (arm.prepare, (wire.PrepareRequest(), host.memory)),
        (arm.step, (0, 0)),
        (arm.measure, (wire.MeasureRequest(),)),
        (arm.disturb, (wire.DisturbRequest(),)),
    ]:
        error = refusal(call, *args)
        assert (reasons(error), error.kind) == (["NOT_BUILT"], Kind.WRONG_ORDER)
    arm.build(order(), host.memory)
    assert reasons(refusal(arm.step, 0, 0)) == ["NOT_PREPARED"]
    request = wire.ExportRequest(what=RECORDING, region=host.region(8))
    assert reasons(refusal(arm.export, request, host.memory)) == ["NOT_RECORDED"]


def test_everything_wrong_with_a_bank_is_named(session: Session) -> None:
    host = session.host
    wrong = host.bank([wire.TensorSpec(name="images", dtype=pb.DTYPE_FLOAT64, sizes=[1, 4, 64, 64])])
    wrong.tensors.extend(host.bank([wire.TensorSpec(name="mask", dtype=pb.DTYPE_FLOAT32, sizes=[1])]).tensors)
    error = refusal(session.arm.record, wire.RecordRequest(inputs=wrong), host.memory)
    assert sorted((problem.reason, problem.path) for problem in error.problems) == [
        ("UNEXPECTED_TENSOR", "inputs/mask"),
        ("WRONG_DTYPE", "inputs/images"),
        ("WRONG_SHAPE", "inputs/images"),
    ]
    wrong.tensors[0].spec.dtype = 99
    wrong.tensors[0].spec.sizes[:] = [1, 3, 64, 64]
    del wrong.tensors[1]
    (problem,) = refusal(session.arm.record, wire.RecordRequest(inputs=wrong), host.memory).problems
    assert (problem.reason, problem.summary) == ("WRONG_DTYPE", "it is dtype 99, not float32")
    twice = wire.Bank(tensors=[session.inputs[0].tensors[0]] * 2)
    error = refusal(session.arm.record, wire.RecordRequest(inputs=twice), host.memory)
    assert [(problem.reason, problem.path) for problem in error.problems] == [("DUPLICATE_TENSOR", "inputs")]
    apart = wire.Bank(tensors=[wire.PlacedTensor(spec=session.inputs[0].tensors[0].spec)])
    error = refusal(session.arm.record, wire.RecordRequest(inputs=apart), host.memory)
    assert [(problem.reason, problem.path) for problem in error.problems] == [("REGION", "inputs/images")]
    error = refusal(session.arm.prepare, wire.PrepareRequest(inputs=[wire.Bank()]), host.memory)
    assert [(problem.reason, problem.path) for problem in error.problems] == [("MISSING_TENSOR", "inputs[0]/images")]


def test_bad_loads_are_refused(session: Session) -> None:
    assert reasons(refusal(session.load, b"nothing")) == ["BAD_WEIGHTS_FILE"]
    data = session.export(WEIGHTS, session.built.weights_length)
    error = refusal(lambda: session.load(data, device="cuda:0", arm=GRAPH))
    assert reasons(error) == ["WRONG_ARM", "WRONG_DEVICE"]
    error = refusal(lambda: session.load(data, recording=session.host.put(b"12345678")))
    assert reasons(error) == ["UNEXPECTED_RECORDING"]
    few = weights.encode({"fc.weight": torch.zeros(1000, 512)})
    error = refusal(session.load, few)
    assert set(reasons(error)) == {"MISSING_WEIGHT"}
    assert "weights/conv1.weight" in [problem.path for problem in error.problems]
    assert not any("num_batches_tracked" in problem.path for problem in error.problems)  # no step reads it
    session.arm.step(0, 0)


def test_a_graph_is_refused_by_arms_that_have_none(session: Session) -> None:
    request = wire.PrepareRequest(inputs=session.inputs, outputs=session.outputs, cuda_graph=True)
    assert reasons(refusal(session.arm.prepare, request, session.host.memory)) == ["NO_GRAPH"]


def test_regions_of_another_length_are_refused(session: Session) -> None:
    request = wire.ExportRequest(what=WEIGHTS, region=session.host.region(100))
    assert reasons(refusal(session.arm.export, request, session.host.memory)) == ["REGION"]
    small = wire.TraceRequest(want=True, operation=0, region=session.host.region(64))
    assert reasons(refusal(session.arm.trace, small, session.host.memory)) == ["REGION"]
    beyond = wire.TraceRequest(want=True, operation=10**6, region=session.host.region(64))
    assert reasons(refusal(session.arm.trace, beyond, session.host.memory)) == ["NO_SUCH_RESULT"]
    beyond = wire.TraceRequest(want=True, operation=0, result=1, region=session.host.region(64))
    assert reasons(refusal(session.arm.trace, beyond, session.host.memory)) == ["NO_SUCH_RESULT"]


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), MemoryError()])
def test_out_of_memory_is_a_refusal(session: Session, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(_images: torch.Tensor) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(session.arm._session.built, "forward", fail)
        caught = refusal(session.arm.step, 0, 0)
    assert (reasons(caught), caught.kind) == (["OUT_OF_MEMORY"], Kind.OUT_OF_MEMORY)
    session.arm.step(0, 0)


def test_the_host_allocator_running_dry_is_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 55, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
