from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator

import pytest
import torch
from conftest import HostMemory, named, same_bits
from interpreter import Interpreter
from training import BATCH, CHECKPOINT, RECORDING, SHORT, WEIGHTS, ByHand, Host, Hyper, batch, differing

from samebits_reference import families, graphs, weights
from samebits_reference.arms import DOUBLE, ReferenceArm
from samebits_reference.families import Order
from samebits_reference.train_session import TrainSession
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import Kind, ProblemError

HYPERS = [Hyper(), Hyper((0.02, 0.03, 0.005), (0.0, 1e-3, 0.0), 0.8, 0.5), Hyper(momentum=0.0), Hyper(ema_decay=0.9)]


@functools.cache
def opened(precision: str) -> Host:
    """An arm for all tests. What they do ends with the next Load."""
    return Host(precision=precision)


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    opened.cache_clear()


@pytest.fixture
def host() -> Host:
    started = opened("fp32")
    started.begin()
    return started


def test_a_step_that_counts(host: Host) -> None:
    session = host.arm._session
    assert session is not None
    module, calls = session.built.module, [0]
    hook = module.register_forward_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))

    def record(index: int, short: bool) -> None:
        images, targets, *_ = host.memory.tensors(host.inputs[short])
        given = batch(index, SHORT if short else BATCH)
        images.copy_(given[0])
        targets.copy_(given[1])
        bank = wire.Bank(tensors=host.inputs[short].tensors[:2])
        session.record(host.memory.memory, bank, named())

    try:
        record(1, short=False)
        record(1, short=True)  # another list: nothing is known of it yet
        with pytest.raises(ProblemError, match="PY_SIDE_EFFECT"):
            record(1, short=False)
    finally:
        hook.remove()
        session._batches.clear()  # whose lists were seen
    record(1, short=False)
    record(2, short=False)


def refusal(call: object, *args: object) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        call(*args)  # type: ignore[operator]
    return caught.value


def reasons(error: ProblemError) -> list[str]:
    return [problem.reason for problem in error.problems]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_steps_are_the_trainers_arithmetic(precision: str) -> None:
    started, hand = opened(precision), ByHand(precision)
    started.begin()
    for index, hyper in enumerate(HYPERS):
        given = batch(index, SHORT if index == 2 else BATCH)
        assert differing(started.step(*given, hyper), hand.step(*given, hyper)) == [], f"step {index + 1}"
    stats = started.arm.stats()
    assert (stats.eager_steps, stats.replays, stats.fallbacks) == (len(HYPERS), 0, 0)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_independent_interpreter_gets_loss_gradients_and_buffers(precision: str) -> None:
    started = opened(precision)
    started.begin()
    reply = started.record()
    data = started.export(RECORDING, reply.recording_length)
    read = weights.decode(started.export(WEIGHTS, reply.weights_length))
    interpreter = Interpreter(data, read)
    for seed in (5, 6):  # buffers move, and storages hold what the run before left; parameters stay
        given = batch(seed)
        made = started.step(*given, Hyper(lr=(0.0, 0.0, 0.0)))
        replayed = interpreter.run(*given)
        assert list(replayed) == [spec.name for spec in reply.outputs]
        assert [name for name, tensor in replayed.items() if not same_bits(tensor, made[name])] == []
        state = interpreter.state()
        for name in (name.removeprefix("buffer.") for name in made if name.startswith("buffer.")):
            assert same_bits(state[name], made[f"buffer.{name}"].flatten()), name


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_recordings_do_not_depend_on_the_batch_and_move_nothing(precision: str) -> None:
    started = opened(precision)
    started.begin()
    before = started.checkpoint()
    files = []
    for seed in (1, 1, 2):
        reply = started.record(seed)
        files.append(started.export(RECORDING, reply.recording_length))
        assert started.checkpoint() == before
    assert files[0] == files[1] == files[2]
    built = weights.decode(started.memory.memory.view(started.weights).tobytes())
    read = weights.decode(started.export(WEIGHTS, reply.weights_length))
    assert read.keys() == built.keys()
    assert all(same_bits(tensor, built[name]) for name, tensor in read.items())


def test_a_recording_says_what_an_engine_needs(host: Host) -> None:
    recording = pb.Recording.FromString(host.export(RECORDING, host.record().recording_length))
    assert (recording.header.mode, recording.header.batch, recording.header.imgsz) == ("train", BATCH, 64)
    keys = [setting.key for setting in recording.header.profile_settings]
    assert keys == sorted(keys)
    settings = {setting.key: setting.value for setting in recording.header.profile_settings}
    assert settings["autocast.cache.train"] == "off"
    assert [settings[f"train.{key}"] for key in ("optimizer", "nesterov", "dampening", "ema")] == [
        "sgd",
        "true",
        "0",
        "true",
    ]
    norms, decayed, biases = json.loads(settings["train.groups"])
    module = families.build(Order("resnet", imgsz=64)).module
    assert set(norms) == {name for name, tensor in module.named_parameters() if tensor.dim() == 1 and "weight" in name}
    assert set(decayed) == {name for name, tensor in module.named_parameters() if tensor.dim() > 1}
    assert set(biases) == {name for name, _ in module.named_parameters() if name.endswith("bias")}
    assert [named.name for named in recording.inputs] == ["images", "targets"]
    names = [named.name for named in recording.outputs]
    assert names == ["loss", *(f"grad.{name}" for name, _ in module.named_parameters())]
    roles = [recording.storages[recording.values[named.value].storage].role for named in recording.outputs]
    assert roles == [pb.ROLE_OUTPUT] + [pb.ROLE_GRADIENT] * (len(names) - 1)


def test_a_shorter_batch_gets_its_own_recording(host: Host) -> None:
    long = pb.Recording.FromString(host.export(RECORDING, host.record().recording_length))
    short = pb.Recording.FromString(host.export(RECORDING, host.record(size=SHORT).recording_length))
    assert short.header.batch == SHORT
    assert [operation.name for operation in short.operations] == [operation.name for operation in long.operations]


def test_backward_operations_know_the_module_of_their_forward(host: Host) -> None:
    recording = pb.Recording.FromString(host.export(RECORDING, host.record().recording_length))
    forward: dict[str, list[tuple[str, str]]] = {}
    for operation in recording.operations:
        forward.setdefault(operation.name, []).append((operation.module, operation.source))
    convolutions = forward["aten::convolution"]
    assert convolutions[0][0] == "conv1"
    assert sorted(forward["aten::convolution_backward"]) == sorted(convolutions)
    assert sorted(forward["aten::native_batch_norm_backward"]) == sorted(forward["aten::native_batch_norm"])
    assert forward["aten::ones_like"][0][0] == "backward"
    assert all(not operation.source.startswith("/") for operation in recording.operations)


def test_a_bank_may_list_some_outputs(host: Host) -> None:
    wanted = [spec for spec in host.built.outputs if spec.name in ("ema.bn1.bias", "loss", "buffer.bn1.num_batches_tracked")]
    bank = host.memory.bank(wanted)
    request = wire.PrepareRequest(inputs=host.inputs, outputs=[bank, host.outputs])
    host.arm.prepare(request, host.memory.memory)
    host.arm.step(host.fill(*batch(1), Hyper()), 0)
    some = {spec.name: tensor.clone() for spec, tensor in zip(wanted, host.memory.tensors(bank), strict=True)}
    host.begin()
    whole = host.step(*batch(1), Hyper())
    assert all(same_bits(tensor, whole[name]) for name, tensor in some.items())
    assert int(some["buffer.bn1.num_batches_tracked"]) == 1


def test_every_hyperparameter_is_obeyed(host: Host) -> None:
    def after(hyper: Hyper) -> dict[str, torch.Tensor]:
        host.begin()
        host.step(*batch(1), Hyper())
        return host.step(*batch(2), hyper)

    base = after(Hyper())
    assert all(name.startswith("ema.") for name in differing(base, after(Hyper(ema_decay=0.5))))
    still = after(Hyper(lr=(0.0, 0.0, 0.0)))
    assert differing(base, still, "momentum.") == []
    assert "param.conv1.weight" in differing(base, still)
    one = differing(base, after(Hyper(lr=(0.01, 0.02, 0.01))), "param.")
    assert "param.fc.weight" in one
    assert not any("bn" in name or name.endswith("bias") for name in one)
    decayed = differing(base, after(Hyper(weight_decay=(0.0, 0.0, 1e-2))), "momentum.")
    assert {"momentum.fc.weight", "momentum.fc.bias"} <= set(decayed)
    assert "momentum.bn1.weight" not in decayed
    assert "momentum.bn1.weight" in differing(base, after(Hyper(momentum=0.8)))
    frozen = after(Hyper(ema_decay=0.0))
    assert same_bits(frozen["ema.conv1.weight"], frozen["param.conv1.weight"])


def test_a_run_goes_on_from_its_checkpoint(host: Host) -> None:
    empty = host.checkpoint()
    host.step(*batch(1), Hyper())
    host.step(*batch(2), Hyper())
    middle = host.checkpoint()
    assert len(empty) == len(middle) == host.built.checkpoint_length
    straight = host.step(*batch(3), Hyper())
    host.begin(middle)
    assert host.checkpoint() == middle
    assert differing(host.step(*batch(3), Hyper()), straight) == []
    host.arm.load(wire.LoadRequest(checkpoint=host.memory.put(middle)), host.memory.memory)  # weights are not needed
    assert host.checkpoint() == middle
    host.begin(empty)
    assert host.checkpoint() == empty
    header = json.loads(middle[8 : 8 + int.from_bytes(middle[:8], "little")])
    assert header["__metadata__"] == {"format": "samebits-checkpoint", "steps": "000000000002"}


def test_a_start_may_lack_momentum_and_no_later_checkpoint_may(host: Host) -> None:
    def without(data: bytes) -> bytes:
        from safetensors.torch import save

        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        return save({name: t for name, t in weights.decode(data).items() if not name.startswith("momentum.")}, metadata)

    start = host.checkpoint()
    first = host.step(*batch(1), Hyper())
    later = host.checkpoint()
    host.begin(without(start))
    assert differing(host.step(*batch(1), Hyper()), first) == []
    error = refusal(host.begin, without(later))
    assert set(reasons(error)) == {"MISSING_WEIGHT"}
    assert "checkpoint/momentum.conv1.weight" in [problem.path for problem in error.problems]


def test_bad_checkpoints_are_refused_and_change_nothing(host: Host) -> None:
    from safetensors.torch import save

    host.step(*batch(1), Hyper())
    good = host.checkpoint()

    def load(data: bytes) -> ProblemError:
        return refusal(host.arm.load, wire.LoadRequest(checkpoint=host.memory.put(data)), host.memory.memory)

    for length in (1, 7, 8, 1000, len(good) // 2, len(good) - 1):
        error = load(good[:length])
        assert [(problem.reason, problem.path) for problem in error.problems] == [("BAD_CHECKPOINT", "checkpoint")], length
    tensors = weights.decode(good)
    tensors["param.fc.bias"] = tensors["param.fc.bias"].half()
    tensors["ema.fc.weight"] = tensors["ema.fc.weight"][:5].clone()
    tensors["param.nobody"] = torch.zeros(1)
    del tensors["buffer.bn1.running_mean"]
    error = load(save(tensors, {"format": "safetensors", "steps": "-1"}))
    assert sorted((problem.reason, problem.path) for problem in error.problems) == [
        ("BAD_CHECKPOINT", "checkpoint/__metadata__.format"),
        ("BAD_CHECKPOINT", "checkpoint/__metadata__.steps"),
        ("MISSING_WEIGHT", "checkpoint/buffer.bn1.running_mean"),
        ("UNEXPECTED_WEIGHT", "checkpoint/param.nobody"),
        ("WRONG_DTYPE", "checkpoint/param.fc.bias"),
        ("WRONG_SHAPE", "checkpoint/ema.fc.weight"),
    ]
    assert host.checkpoint() == good


def test_labels_that_are_no_class_are_refused_before_the_step(host: Host) -> None:
    before = host.checkpoint()
    images, _ = batch(1)
    error = refusal(host.step, images, torch.tensor([1000, 3, -1]), Hyper())
    assert [(problem.reason, problem.path) for problem in error.problems] == [
        ("LABEL_OUT_OF_RANGE", "targets[0]"),
        ("LABEL_OUT_OF_RANGE", "targets[2]"),
    ]
    assert host.checkpoint() == before
    made = host.step(images, torch.tensor([999, -100, 0]), Hyper())
    assert bool(made["loss"].isfinite())


def test_nan_in_an_image_is_trained_on(host: Host) -> None:
    images, targets = batch(1)
    images[1, 2, 3, 4] = float("nan")
    hand = ByHand()
    assert differing(host.step(images, targets, Hyper()), hand.step(images, targets, Hyper())) == []


def test_batches_that_cannot_be_are_refused(host: Host) -> None:
    def prepare(size: int, labels: int) -> list[tuple[str, str]]:
        specs = [wire.TensorSpec(name=s.name, dtype=s.dtype, sizes=s.sizes) for s in host.built.inputs]
        specs[0].sizes[0], specs[1].sizes[0] = size, labels
        bank = host.memory.bank(specs)
        request = wire.PrepareRequest(inputs=[bank], outputs=[host.outputs])
        error = refusal(host.arm.prepare, request, host.memory.memory)
        return [(problem.reason, problem.path) for problem in error.problems]

    assert prepare(0, 0) == [("EMPTY_BATCH", "inputs[0]/images")]
    assert prepare(2, 3) == [("WRONG_SHAPE", "inputs[0]/targets")]
    assert prepare(1025, 1025) == [("BAD_BATCH", "inputs[0]/images")]
    assert reasons(refusal(host.arm.step, 0, 0)) == ["NOT_PREPARED"]


def test_a_trace_is_the_recordings_operations_and_moves_nothing(host: Host) -> None:
    recording = pb.Recording.FromString(host.export(RECORDING, host.record().recording_length))
    before = host.checkpoint()
    host.fill(*batch(4), Hyper())
    trace = host.arm.trace(wire.TraceRequest(input_bank=0), host.memory.memory)
    assert host.checkpoint() == before
    assert [len(operation.digests) for operation in trace.operations] == [
        sum(result.WhichOneof("kind") == "value" for result in operation.results) for operation in recording.operations
    ]
    made = host.step(*batch(4), Hyper())
    digests = {digest for operation in trace.operations for digest in operation.digests}
    assert all(digest_tensor(tensor) in digests for name, tensor in made.items() if name.startswith(("loss", "grad.")))


def test_measured_steps_train(host: Host) -> None:
    host.fill(*batch(1), Hyper())
    assert len(host.arm.measure(wire.MeasureRequest(input_bank=0, iterations=2)).milliseconds) == 2
    measured = weights.decode(host.checkpoint())
    host.begin()
    host.step(*batch(1), Hyper())
    host.step(*batch(1), Hyper())
    stepped = weights.decode(host.checkpoint())
    assert differing(measured, stepped) == []


def test_the_double_arm_measures_the_error(host: Host) -> None:
    double = Host(DOUBLE)
    double.begin()
    exact, single = double.step(*batch(1), Hyper()), host.step(*batch(1), Hyper())
    for name in ("loss", "grad.conv1.weight", "param.fc.weight", "ema.bn1.running_mean"):
        assert exact[name].dtype == torch.float64
        error = (exact[name] - single[name]).abs().max() / exact[name].abs().max()
        assert error < 1e-3, name
    assert not same_bits(exact["grad.conv1.weight"].float(), single["grad.conv1.weight"])


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"mode": "evaluate"}, "UNKNOWN_MODE", "mode"),
        ({"family": "yolo9"}, "UNKNOWN_MODE", "task"),
        ({"precision": "fp16"}, "UNKNOWN_MODE", "precision"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, object], reason: str, path: str) -> None:
    memory = HostMemory(1 << 20)
    request = {"family": "resnet", "arm": "reference-eager", "device": "cpu", "imgsz": 64, "mode": "train"} | changes
    error = refusal(ReferenceArm().build, wire.BuildRequest(**request), memory.memory)
    assert [(problem.reason, problem.path) for problem in error.problems] == [(reason, path)]
    assert error.kind is Kind.UNIMPLEMENTED
    memory.close()


def test_a_family_that_predicts_has_no_checkpoint() -> None:
    memory = HostMemory(64 << 20)
    arm = ReferenceArm()
    arm.build(wire.BuildRequest(family="resnet", arm="reference-eager", device="cpu", imgsz=64), memory.memory)
    export = wire.ExportRequest(what=CHECKPOINT, region=memory.region(64))
    assert reasons(refusal(arm.export, export, memory.memory)) == ["UNKNOWN_EXPORT"]
    load = wire.LoadRequest(checkpoint=memory.put(b"12345678"))
    assert reasons(refusal(arm.load, load, memory.memory)) == ["UNEXPECTED_CHECKPOINT"]
    memory.close()


def test_a_checkpoint_says_how_many_steps_were_made(host: Host) -> None:
    def steps() -> object:
        data = host.checkpoint()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        assert list(header["__metadata__"]) == ["format", "steps"]
        return header["__metadata__"]["steps"]

    assert steps() == "000000000000"
    host.step(*batch(1), Hyper())
    host.step(*batch(2), Hyper())
    saved = host.checkpoint()
    assert steps() == "000000000002"
    host.begin()
    assert steps() == "000000000000"
    host.begin(saved)
    assert steps() == "000000000002"


class StandIn:
    """What a CUDA graph of a training step does, without CUDA: it writes loss and gradients to where they lay."""

    made: list[StandIn] = []

    def __init__(self, step: Callable[[], dict[str, torch.Tensor]]) -> None:
        self.nodes, self.kinds = 7, {"kernel": 7}
        self._step = step
        self.outputs = [(name, tensor.clone()) for name, tensor in step().items()]
        self.poisoned: list[torch.Tensor] = []
        StandIn.made.append(self)

    def replay(self) -> None:
        for (_, target), made in zip(self.outputs, self._step().values(), strict=True):
            target.copy_(made)

    def poison(self, but: list[torch.Tensor]) -> None:
        self.poisoned = but
        for _, tensor in self.outputs:
            tensor.fill_(float("nan"))

    def release(self) -> None:
        self.outputs = []


@pytest.fixture
def graphed(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainSession]:
    monkeypatch.setattr(graphs, "Graph", StandIn)
    monkeypatch.setattr(StandIn, "made", [])
    session = host.arm._session
    assert isinstance(session, TrainSession)
    session.prepare(host.memory.memory, wire.PrepareRequest(inputs=host.inputs, outputs=[host.outputs], cuda_graph=True))
    yield session
    session.release()


def test_replays_train_as_eager_steps_do(host: Host, graphed: TrainSession) -> None:
    assert len(graphed.captured()) == 2  # one a batch size
    hand = ByHand()
    for index, hyper in enumerate(HYPERS):
        given = batch(index, SHORT if index == 2 else BATCH)
        graphed.poison()
        assert differing(host.step(*given, hyper), hand.step(*given, hyper)) == [], f"step {index + 1}"
    stats = graphed.stats
    assert (stats.replays, stats.eager_steps, stats.launches) == (len(HYPERS), 0, 7 * len(HYPERS))


def test_what_a_step_needs_is_not_poisoned(host: Host, graphed: TrainSession) -> None:
    before = host.checkpoint()
    graphed.poison()
    sizes = [[tuple(tensor.shape) for tensor in graph.poisoned] for graph in StandIn.made]
    assert sizes == [[(size, 3, 64, 64), (size,)] for size in (SHORT, BATCH)]
    assert host.checkpoint() == before


def test_graphs_of_a_run_are_released(graphed: TrainSession) -> None:
    kept = list(StandIn.made)
    graphed.release()
    assert graphed.captured() == []
    assert [graph.outputs for graph in kept] == [[], []]
    assert graphed.step.gradients() == []


def test_a_batch_that_the_family_cannot_train_on_is_named(host: Host) -> None:
    def refuse(*_arguments: object) -> None:
        raise ValueError("Expected more than 1 value per channel when training")

    session = host.arm._session
    assert isinstance(session, TrainSession)
    before = host.checkpoint()
    specs = [wire.TensorSpec(name=s.name, dtype=s.dtype, sizes=s.sizes) for s in host.built.inputs]
    specs[0].sizes[0] = specs[1].sizes[0] = 1
    request = wire.PrepareRequest(inputs=[host.memory.bank(specs)], outputs=[host.outputs])
    handle = session.built.module.layer4.register_forward_hook(refuse)
    try:
        error = refusal(host.arm.prepare, request, host.memory.memory)
    finally:
        handle.remove()
    (problem,) = error.problems
    assert (problem.reason, problem.path) == ("BAD_BATCH", "inputs")
    assert problem.summary.startswith("resnet cannot train on a batch of 1: Expected more than 1 value")
    assert host.checkpoint() == before
    host.arm.prepare(request, host.memory.memory)  # it was not the batch
    assert host.checkpoint() == before
