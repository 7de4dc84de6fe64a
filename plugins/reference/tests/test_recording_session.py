from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, built, named, probe, recorded, same_bits

from samebits_reference import decode, encode, weights
from samebits_reference.arms import DOUBLE, EAGER, GRAPH, ReferenceArm
from samebits_reference.families import flatten
from samebits_reference.interpreter import Interpreter
from samebits_reference.storages import lowest_bit
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.digest import digest_bytes, digest_tensor
from samebits_wire.problems import Kind, ProblemError


class Loaded:
    """A host's dealings with an arm that runs a recording."""

    def __init__(self, host: HostMemory, data: bytes, weights_file: bytes = b"", arm: str = EAGER) -> None:
        self.host, self.arm = host, ReferenceArm()
        request = wire.LoadRequest(recording=host.put(data), weights=host.put(weights_file), device="cpu", arm=arm)
        self.reply = self.arm.load(request, host.memory)
        self.inputs, self.outputs = host.bank(self.reply.inputs), host.bank(self.reply.outputs)
        self.arm.prepare(wire.PrepareRequest(inputs=[self.inputs], outputs=[self.outputs]), host.memory)

    def step(self, *given: torch.Tensor) -> list[torch.Tensor]:
        for place, tensor in zip(self.host.tensors(self.inputs), given, strict=True):
            place.copy_(tensor)
        self.arm.step(0, 0)
        return self.host.tensors(self.outputs)


@pytest.mark.parametrize(("family", "precision"), [("resnet", "fp32"), ("resnet", "bf16"), ("yolo9", "fp32")])
def test_a_recording_gives_the_bits_of_the_step_it_was_made_of(host: HostMemory, family: str, precision: str) -> None:
    of, taken = built(family, precision), recorded(family, precision)
    loaded = Loaded(host, taken.data, weights.encode(taken.weights))
    assert loaded.reply.recording_digest == digest_bytes(taken.data)
    for seed in (3, 4):
        images = probe(of, seed)
        expected = list(flatten(of.step(images)))
        outputs = loaded.step(images)
        assert [spec.name for spec in loaded.reply.outputs] == [name for name, _ in expected]
        assert all(same_bits(ours, theirs) for ours, (_, theirs) in zip(outputs, expected, strict=True))
    assert loaded.arm.stats().eager_steps == 2


def test_a_trace_numbers_operations_as_the_recording_does(host: HostMemory) -> None:
    taken = recorded("resnet")
    loaded = Loaded(host, taken.data, weights.encode(taken.weights))
    (output,) = loaded.step(probe(built("resnet"), 5))
    trace = loaded.arm.trace(wire.TraceRequest(), host.memory)
    assert len(trace.operations) == len(taken.recording.operations)
    assert trace.operations[-1].digests[0] == digest_tensor(output)


def test_double_precision_takes_the_place_of_every_float(host: HostMemory) -> None:
    of, taken = built("resnet", "bf16"), recorded("resnet", "bf16")
    loaded = Loaded(host, taken.data, weights.encode(taken.weights), arm=DOUBLE)
    images = probe(of, 6)
    (output,) = loaded.step(images)
    ((_, rounded),) = flatten(of.step(images))
    assert output.dtype == torch.float64
    difference = (output - rounded.double()).abs().max() / output.abs().max()
    assert 0 < difference < 0.1


def test_whole_numbers_become_double_there_too(host: HostMemory) -> None:
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [4], dtype=pb.DTYPE_INT32)
    y = tensor(of, pb.ROLE_OUTPUT, [4])
    call(of, "aten::div.Tensor", [y], self=x, other=x)
    loaded = Loaded(host, ends(of, [x], [y]), arm=DOUBLE)
    (output,) = loaded.step(torch.arange(1, 5, dtype=torch.int32))
    assert output.dtype == torch.float64
    assert torch.get_default_dtype() == torch.float32


# Recordings made by hand.


def blank(device_type: str = "cpu") -> pb.Recording:
    head = pb.Header(schema=1, family="tiny", size="t", task="classify", mode="predict", precision="fp32", profile="exact-1")
    head.device_type, head.imgsz, head.batch = device_type, 8, 1
    return pb.Recording(header=head)


def tensor(
    of: pb.Recording,
    role: int,
    sizes: list[int],
    strides: list[int] | None = None,
    offset: int = 0,
    alignment: int = 512,
    dtype: int = pb.DTYPE_FLOAT32,
    on: int = -1,
) -> int:
    """A value on a storage of its own, or on that of another value."""
    strides = strides if strides is not None else list(torch.empty(sizes, device="meta").stride())
    if on < 0:
        span = offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        of.storages.add(bytes=4 * span, role=role, dtype=dtype, name=f"s{len(of.storages)}")
    storage = of.values[on].storage if on >= 0 else len(of.storages) - 1
    of.values.add(storage=storage, dtype=dtype, sizes=sizes, strides=strides, offset=offset, alignment=alignment)
    return len(of.values) - 1


def call(of: pb.Recording, name: str, results: list[int], **arguments: object) -> None:
    operation = of.operations.add(name=name)
    for key, given in arguments.items():
        argument = operation.arguments.add(name=key)
        setattr(argument, "value" if isinstance(given, int) else "none", given if isinstance(given, int) else True)
    operation.results.extend(pb.Argument(value=result) for result in results)


def ends(of: pb.Recording, inputs: list[int], outputs: list[int]) -> bytes:
    of.inputs.extend(pb.NamedValue(name=f"in{index}", value=index) for index in inputs)
    of.outputs.extend(pb.NamedValue(name=f"out{index}", value=index) for index in outputs)
    return of.SerializeToString(deterministic=True)


def refusal(data: bytes, host: HostMemory, arm: str = EAGER) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        Loaded(host, data, arm=arm)
    return caught.value


def test_writes_in_place_reach_all_that_lies_there(host: HostMemory) -> None:
    of = blank()
    whole = tensor(of, pb.ROLE_INPUT, [8])
    column = tensor(of, pb.ROLE_INPUT, [4], [2], 1, 4, on=whole)
    call(of, "aten::relu_", [column], self=column)
    loaded = Loaded(host, ends(of, [whole], [whole, column]))
    for _ in range(2):  # the input is what it was, whatever the step before made of it
        everything, part = loaded.step(torch.arange(8) - 10.0)
        assert everything.tolist() == [-10, 0, -8, 0, -6, 0, -4, 0]
        assert part.tolist() == [0, 0, 0, 0]


def test_everything_that_cannot_run_is_refused_at_once(host: HostMemory) -> None:
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [4])
    made = [tensor(of, pb.ROLE_SCRATCH, [4]) for _ in range(5)]
    call(of, "aten::no_such_thing", [made[0]], self=x)
    call(of, "aten::relu", [made[1]], self=made[0])  # says nothing of its own
    call(of, "aten::relu", [made[2]], other=x)
    call(of, "aten::mm", [made[3]], self=x, mat2=x)
    wrong = tensor(of, pb.ROLE_SCRATCH, [2, 2])
    call(of, "aten::relu", [wrong], self=x)
    call(of, "aten::silu", [made[4]], self=x)
    error = refusal(ends(of, [x], made), host)
    assert error.kind == Kind.BAD_INPUT
    assert [(problem.path, problem.reason) for problem in error.problems] == [
        ("operations[0]", "UNKNOWN_OPERATION"),
        ("operations[2]", "OTHER_SCHEMA"),
        ("operations[3]", "OPERATION_FAILED"),
        ("operations[4]", "RESULT_CHANGED"),
    ]


def test_a_trial_on_zeros_says_nothing_of_divisions(host: HostMemory) -> None:
    of = blank()
    x, y = (tensor(of, pb.ROLE_INPUT, [2], dtype=pb.DTYPE_INT32) for _ in range(2))
    z = tensor(of, pb.ROLE_OUTPUT, [2], dtype=pb.DTYPE_INT32)
    call(of, "aten::remainder.Tensor", [z], self=x, other=y)
    loaded = Loaded(host, ends(of, [x, y], [z]))
    (output,) = loaded.step(torch.tensor([7, 8], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32))
    assert output.tolist() == [3, 2]


def test_strides_are_the_recordings_or_the_operation_is_refused(host: HostMemory) -> None:
    def transposed(device_type: str) -> bytes:
        of = blank(device_type)
        x = tensor(of, pb.ROLE_INPUT, [2, 3])
        y = tensor(of, pb.ROLE_OUTPUT, [2, 3], [1, 2])
        flat = tensor(of, pb.ROLE_OUTPUT, [6], on=y)
        call(of, "aten::relu", [y], self=x)
        return ends(of, [x], [y, flat])

    (problem,) = refusal(transposed("cpu"), host).problems
    assert (problem.reason, problem.path) == ("RESULT_CHANGED", "operations[0]")
    assert "strides [3, 1], offset 0, recorded were [1, 2], 0" in problem.summary
    result, memory = Loaded(host, transposed("cuda")).step(torch.arange(6.0).view(2, 3))
    assert result.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert memory.tolist() == [0, 3, 1, 4, 2, 5]


def test_what_nobody_reads_may_be_something_else_on_another_kind_of_device(host: HostMemory) -> None:
    def pooled(device_type: str) -> bytes:
        of = blank(device_type)
        x, y = tensor(of, pb.ROLE_INPUT, [2, 3]), tensor(of, pb.ROLE_OUTPUT, [2])
        other = tensor(of, pb.ROLE_SCRATCH, [7], dtype=pb.DTYPE_INT32)
        call(of, "aten::max.dim", [y, other], self=x)
        of.operations[0].arguments.add(name="dim", integer=1)
        of.operations[0].arguments.add(name="keepdim", boolean=False)
        return ends(of, [x], [y])

    (problem,) = refusal(pooled("cpu"), host).problems
    assert problem.reason == "RESULT_CHANGED"
    (largest,) = Loaded(host, pooled("cuda")).step(torch.arange(6.0).view(2, 3))
    assert largest.tolist() == [2, 5]


def test_a_copy_is_no_view() -> None:
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [4])
    y = tensor(of, pb.ROLE_INPUT, [4], on=x)
    call(of, "aten::relu", [y], self=x)
    ends(of, [x], [y])
    with pytest.raises(ProblemError) as caught:
        Interpreter(of, torch.device("cpu")).rehearse()
    assert "memory of its own" in caught.value.problems[0].summary


def test_storages_lie_as_they_lay() -> None:
    of = blank("cuda")
    x = tensor(of, pb.ROLE_INPUT, [4], alignment=16)
    y = tensor(of, pb.ROLE_INPUT, [2], None, 2, 8, on=x)
    z = tensor(of, pb.ROLE_SCRATCH, [2])
    call(of, "aten::relu", [z], self=y)
    ends(of, [x], [z])
    interpreter = Interpreter(of, torch.device("cpu"))
    place = interpreter.input(0)
    place.copy_(torch.tensor([1.0, 2.0, -3.0, 4.0]))
    assert lowest_bit(place.data_ptr() - 16) >= 64  # the CPU's allocator gives no more
    assert interpreter.run()[0].tolist() == [0, 4]


def test_what_is_no_recording_of_this_profile_is_refused(host: HostMemory) -> None:
    assert refusal(b"\xff\xff\xff", host).problems[0].reason == "TORN_RECORDING"
    of = blank()
    x, y = tensor(of, pb.ROLE_INPUT, [2]), tensor(of, pb.ROLE_SCRATCH, [2])
    call(of, "aten::relu", [y], self=x)
    for key, value in (("torch.backends.cudnn.allow_tf32", "on"), ("torch.backends.cudnn.deterministic", "on"), ("x", "y")):
        of.header.profile_settings.add(key=key, value=value)
    error = refusal(ends(of, [x], [y]), host)
    assert [problem.reason for problem in error.problems] == ["PROFILE_DIFFERS", "PROFILE_DIFFERS"]
    assert refusal(of.SerializeToString(), host, GRAPH).problems[0].reason == "NO_CUDA"
    of.header.schema = 2
    assert refusal(of.SerializeToString(), host).problems[0].reason == "SCHEMA_VERSION"


def test_weights_that_do_not_fit_are_refused_at_once(host: HostMemory) -> None:
    taken = recorded("resnet")
    few = dict(taken.weights)
    del few["conv1.weight"]
    few["bn1.weight"] = few["bn1.weight"].double()
    with pytest.raises(ProblemError) as caught:
        Loaded(host, taken.data, weights.encode(few))
    found = {(problem.path, problem.reason) for problem in caught.value.problems}
    assert found == {("weights/conv1.weight", "MISSING_WEIGHT"), ("weights/bn1.weight", "WRONG_WEIGHT")}
    assert named().profile == taken.recording.header.profile


def test_arguments_are_what_the_recording_says(host: HostMemory) -> None:
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [1, 2, 2, 2])
    y = tensor(of, pb.ROLE_OUTPUT, [1, 2, 2, 2], [8, 1, 4, 2])
    z = tensor(of, pb.ROLE_OUTPUT, [1, 2, 2, 2], dtype=pb.DTYPE_FLOAT64)
    call(of, "aten::clone", [y], self=x)
    of.operations[0].arguments.add(name="memory_format", memory_format="channels_last")
    call(of, "aten::_to_copy", [z], self=x)
    for name, given in (
        ("dtype", {"dtype": pb.DTYPE_FLOAT64}),
        ("layout", {"layout": "strided"}),
        ("device", {"device": "cpu"}),
        ("pin_memory", {"none": True}),
        ("non_blocking", {"boolean": False}),
        ("memory_format", {"memory_format": "preserve"}),
    ):
        of.operations[1].arguments.add(name=name, **given)
    of.storages[of.values[z].storage].bytes *= 2
    loaded = Loaded(host, ends(of, [x], [y, z]))
    given = torch.arange(8.0).view(1, 2, 2, 2)
    one, other = loaded.step(given)
    assert torch.equal(one, given)
    assert torch.equal(other, given.double())


def relu(mutate: str) -> pb.Recording:
    """A recording of one operation, with something wrong in it."""
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [4])
    y = tensor(of, pb.ROLE_OUTPUT, [4])
    call(of, "aten::relu", [y], self=x)
    operation = of.operations[0]
    match mutate:
        case "results":
            operation.results.add(value=tensor(of, pb.ROLE_SCRATCH, [4]))
        case "list":
            del operation.results[:]
            operation.results.add().list.items.add(value=y)
        case "none":
            operation.results[0].none = True
        case "dtype":
            of.values[y].dtype = of.storages[1].dtype = pb.DTYPE_INT32
        case "sizes":
            of.values[y].sizes[:] = [2]
        case "argument":
            operation.arguments[0].Clear()
            operation.arguments[0].name = "self"
    ends(of, [x], [y])
    return of


@pytest.mark.parametrize(
    ("wrong", "reason", "said"),
    [
        ("results", "RESULT_CHANGED", "aten::relu gave 1 results, recorded were 2"),
        ("list", "RESULT_CHANGED", "aten::relu gave a Tensor, recorded was a list"),
        ("none", "RESULT_CHANGED", "aten::relu gave a Tensor, recorded was a none"),
        ("dtype", "RESULT_CHANGED", "gave torch.float32 [4], recorded was torch.int32 [4]"),
        ("sizes", "RESULT_CHANGED", "gave torch.float32 [4], recorded was torch.float32 [2]"),
        ("argument", "UNSUPPORTED_ARGUMENT", "argument self is of kind None"),
    ],
)
def test_what_an_operation_gives_is_held_against_the_recording(wrong: str, reason: str, said: str) -> None:
    interpreter = Interpreter(relu(wrong), torch.device("cpu"))
    for run in (interpreter.rehearse, interpreter.run):
        with pytest.raises(ProblemError) as caught:
            run()
        assert [problem.reason for problem in caught.value.problems] == [reason]
        assert said in caught.value.problems[0].summary


def test_an_operation_that_fails_on_what_it_is_given_is_named() -> None:
    of = blank()
    x = tensor(of, pb.ROLE_INPUT, [2], dtype=pb.DTYPE_INT64)
    of.storages[0].bytes = 16
    y = tensor(of, pb.ROLE_OUTPUT, [2], dtype=pb.DTYPE_INT64)
    of.storages[1].bytes = 16
    call(of, "aten::gather", [y], self=x)
    of.operations[0].arguments.add(name="dim", integer=0)
    of.operations[0].arguments.add(name="index", value=x)
    of.operations[0].arguments.add(name="sparse_grad", boolean=False)
    ends(of, [x], [y])
    interpreter = Interpreter(of, torch.device("cpu"))
    interpreter.rehearse()
    interpreter.input(0).fill_(7)
    with pytest.raises(ProblemError) as caught:
        interpreter.run()
    (problem,) = caught.value.problems
    assert (problem.reason, problem.path) == ("OPERATION_FAILED", "operations[0]")
    assert problem.summary.startswith("aten::gather: index 7 is out of bounds")
    interpreter.input(0).fill_(1)
    assert interpreter.run()[0].tolist() == [1, 1]


@pytest.mark.parametrize("run", ["rehearse", "run"])
def test_memory_that_runs_out_is_no_matter_of_the_operation(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    interpreter = Interpreter(relu(""), torch.device("cpu"))
    monkeypatch.setattr(interpreter, "_call", full)
    with pytest.raises(torch.OutOfMemoryError):
        getattr(interpreter, run)()
    assert torch.get_default_dtype() == torch.float32


def test_operations_of_torchvision_are_found() -> None:
    assert decode.operation("torchvision::nms") is torch.ops.torchvision.nms.default
    assert decode.operation("aten::add.Tensor") is torch.ops.aten.add.Tensor


def test_memory_formats_are_read_as_they_are_written() -> None:
    formal = torch.ops.aten.clone.default._schema.arguments[1].type
    formats = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)
    written = [encode.argument("memory_format", each, formal, lambda _: 0).memory_format for each in formats]
    assert written == ["contiguous", "preserve", "channels_last", "channels_last_3d"]
    assert [decode.memory_format(name) for name in written] == list(formats)


def test_dtypes_are_read_as_they_are_written() -> None:
    for name, number in list(pb.DType.items())[1:]:
        dtype = getattr(torch, name.removeprefix("DTYPE_").lower())
        assert encode.dtype(dtype) == number
        assert decode.dtype(number) == dtype
        assert decode.dtype(number, double=True) == (torch.float64 if dtype.is_floating_point else dtype)
