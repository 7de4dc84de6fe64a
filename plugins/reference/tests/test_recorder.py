from __future__ import annotations

import collections

import pytest
import torch
from conftest import built, hand_made, probe, recorded, same_bits, take
from interpreter import Interpreter
from torch import nn

from samebits_reference import encode, families, recorder
from samebits_reference.families import Order, flatten
from samebits_wire import recording_pb2 as pb
from samebits_wire.problems import ProblemError

CELLS = [("resnet", "fp32"), ("resnet", "bf16"), ("yolo9", "fp32"), ("yolo9", "bf16")]


@pytest.mark.parametrize(("family", "precision"), CELLS)
def test_an_independent_interpreter_gets_eagers_bits(family: str, precision: str) -> None:
    of, taken = built(family, precision), recorded(family, precision)
    interpreter = Interpreter(taken.data, taken.weights)
    for seed in (2, 3, 2):  # storages hold what the run before left
        images = probe(of, seed)
        eager = dict(flatten(of.step(images.clone())))
        replayed = interpreter.run(images)
        assert replayed.keys() == eager.keys()
        for name, tensor in eager.items():
            assert same_bits(replayed[name], tensor), name


@pytest.mark.parametrize(("family", "precision"), CELLS)
def test_two_probes_and_two_builds_give_the_same_bytes(family: str, precision: str) -> None:
    of = built(family, precision)
    again = families.build(Order(family, precision=precision, imgsz=64))
    again.step(probe(again, 0))
    first, second, third = recorded(family, precision), take(of, probe(of, 2) * 100 - 50), take(again, probe(again, 3))
    assert first.data == second.data == third.data
    for name, tensor in first.weights.items():
        assert same_bits(tensor, third.weights[name]), name


# Numbers of operations that eager PyTorch 2.11 runs on the CPU.
COUNTS = {
    ("resnet", "fp32"): {"aten::convolution": 20, "aten::native_batch_norm": 20, "aten::relu_": 17, "aten::add_.Tensor": 0},
    ("resnet", "bf16"): {"aten::convolution": 20, "aten::_to_copy": 23, "aten::addmm": 1},
    ("yolo9", "fp32"): {"aten::convolution": 227, "aten::native_batch_norm": 221, "aten::silu": 179, "aten::cat": 34},
    ("yolo9", "bf16"): {"aten::convolution": 227, "aten::native_batch_norm": 221, "aten::silu": 179, "aten::cat": 34},
}
TOTALS = {("resnet", "fp32"): 90, ("resnet", "bf16"): 113, ("yolo9", "fp32"): 1042, ("yolo9", "bf16"): 1277}


@pytest.mark.parametrize(("family", "precision"), CELLS)
def test_every_operation_is_there(family: str, precision: str) -> None:
    recording = recorded(family, precision).recording
    names = collections.Counter(operation.name for operation in recording.operations)
    assert len(recording.operations) == TOTALS[family, precision]
    for name, count in COUNTS[family, precision].items():
        assert names[name] == count, name


def test_operations_know_module_and_source() -> None:
    operations = recorded("yolo9").recording.operations
    assert operations[0].module == "backbone.conv0.conv"
    assert operations[0].source.startswith("libreyolo/models/yolo9/nn.py:")
    assert operations[-1].module == "head"
    assert all(operation.source for operation in operations)
    assert not any(operation.source.startswith("/") for operation in operations)


def test_storages_are_named_and_have_roles() -> None:
    taken = recorded("yolo9")
    recording = taken.recording
    by_name = {storage.name: storage for storage in recording.storages if storage.name}
    assert by_name["images"].role == pb.ROLE_INPUT
    assert by_name["images"].bytes == 3 * 64 * 64 * 4
    assert by_name["backbone.conv0.conv.weight"].role == pb.ROLE_PARAMETER
    assert by_name["backbone.conv0.bn.running_mean"].role == pb.ROLE_BUFFER
    assert by_name["head.dfl.project"].role == pb.ROLE_BUFFER  # not in state_dict
    constants = [name for name in by_name if name.startswith("constant.")]
    assert constants == ["constant.0", "constant.1"]  # anchors and strides, cached at first use
    assert "backbone.conv0.bn.num_batches_tracked" not in by_name  # nobody reads it
    assert taken.weights.keys() == by_name.keys() - {"images"}
    outputs = {recording.values[named.value].storage for named in recording.outputs}
    assert all(recording.storages[index].role == pb.ROLE_OUTPUT for index in outputs)
    assert [named.name for named in recording.outputs][:2] == ["predictions", "raw_outputs.0"]


def test_autocast_promotion_is_recorded() -> None:
    recording = recorded("resnet", "bf16").recording
    first = next(operation for operation in recording.operations if operation.name == "aten::convolution")
    dtypes = [recording.values[first.arguments[index].value].dtype for index in (0, 1)]
    assert dtypes == [pb.DTYPE_BFLOAT16, pb.DTYPE_BFLOAT16]
    norm = next(operation for operation in recording.operations if operation.name == "aten::native_batch_norm")
    assert recording.values[norm.arguments[1].value].dtype == pb.DTYPE_FLOAT32


def test_header_says_what_was_recorded() -> None:
    header = recorded("resnet").recording.header
    assert (header.family, header.size, header.task, header.mode) == ("resnet", "18", "classify", "predict")
    assert (header.precision, header.profile, header.device_type) == ("fp32", "exact-1", "cpu")
    assert (header.imgsz, header.batch, header.seed, header.schema) == (64, 1, 0, 1)
    assert [(setting.key, setting.value) for setting in header.environment] == [("torch", torch.__version__)]
    settings = [(setting.key, setting.value) for setting in header.profile_settings]
    assert settings == sorted(settings)
    assert ("torch.backends.cudnn.deterministic", "on") in settings
    assert "integers" in header.seasoning


# A family of our own for each hazard: small modules in place of a real one.


class Views(nn.Module):
    """Aliases, in-place writes through views, a bare tensor, shared and partly used parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Parameter(torch.arange(12, dtype=torch.float32).view(3, 4).t(), requires_grad=True)
        self.inner = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        y = x + 1
        half = y[:, :, ::2, 3:]
        half.mul_(self.block[0, 0])
        self.inner(y)
        z = y.permute(0, 2, 3, 1)
        z.add_(0.5, alpha=2)
        return {"b": [z, (half, 7, None)], "a": y.to(torch.float64).sum(), "same": x}


def test_aliases_and_writes_through_views() -> None:
    of = hand_made(Views())
    images = probe(built("resnet"), 1)
    taken = take(of, images.clone())
    recording = taken.recording
    assert [named.name for named in recording.outputs] == ["a", "b.0", "b.1.0", "same"]
    value = {named.name: recording.values[named.value] for named in recording.outputs}
    assert value["b.0"].storage == value["b.1.0"].storage
    assert recording.storages[value["same"].storage].role == pb.ROLE_INPUT
    relu = next(operation for operation in recording.operations if operation.name == "aten::relu_")
    assert relu.results[0].value == relu.arguments[0].value
    assert relu.module == "inner"
    replayed = Interpreter(taken.data, taken.weights).run(images)
    for name, tensor in flatten(of.step(images.clone())):
        assert same_bits(replayed[name], tensor), name


def test_defaults_of_the_schema_are_filled_in() -> None:
    of = hand_made(Views())
    operation = take(of, probe(built("resnet"), 1)).recording.operations[0]
    assert operation.name == "aten::add.Tensor"
    assert [argument.name for argument in operation.arguments] == ["self", "other", "alpha"]
    assert [argument.WhichOneof("kind") for argument in operation.arguments] == ["value", "integer", "integer"]


class Refused(nn.Module):
    def __init__(self, hazard: str) -> None:
        super().__init__()
        self.hazard = hazard
        self.register_buffer("seen", torch.zeros(1))
        self.spectrum = torch.ones(1, dtype=torch.complex64)
        self.inner = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.hazard:
            case "item":
                return x * float(x.sum().item())
            case "nonzero":
                return x.nonzero()
            case "mask":
                return x[x > 0.5]
            case "random":
                return x + torch.rand_like(x)
            case "state":
                self.seen += 1
                return x + self.seen
            case "sparse":
                return x.sum((0, 1)).to_sparse()
            case "complex":
                return torch.fft.rfft(x)
            case "resize":
                return (x + 1).resize_(2, 2)
            case "complex constant":
                return x + torch.view_as_real(self.spectrum).sum()
            case "lazy negative":
                return torch._neg_view(x)
        raise AssertionError(self.hazard)


@pytest.mark.parametrize(
    ("hazard", "reason"),
    [
        ("item", "DYNAMIC_OPERATION"),
        ("nonzero", "DYNAMIC_OPERATION"),
        ("mask", "DYNAMIC_OPERATION"),
        ("random", "RANDOM_OPERATION"),
        ("state", "WRITES_STATE"),
        ("sparse", "UNRECORDABLE"),
        ("complex", "UNRECORDABLE"),
        ("resize", "UNRECORDABLE"),
        ("complex constant", "UNRECORDABLE"),
        ("lazy negative", "UNRECORDABLE"),
    ],
)
def test_what_cannot_be_recorded_is_refused(hazard: str, reason: str) -> None:
    of = hand_made(nn.Sequential(Refused(hazard)))
    with pytest.raises(ProblemError) as refusal:
        take(of, probe(built("resnet"), 1))
    problem = next(problem for problem in refusal.value.problems if problem.reason == reason)
    assert problem.path.startswith("operations[")
    assert "module 0" in problem.detail


def test_every_refusal_of_a_step_is_named() -> None:
    of = hand_made(nn.Sequential(Refused("random"), Refused("item")))
    with pytest.raises(ProblemError) as refusal:
        take(of, probe(built("resnet"), 1))
    assert {problem.reason for problem in refusal.value.problems} == {"RANDOM_OPERATION", "DYNAMIC_OPERATION"}


def test_indices_along_some_dimensions_are_recorded() -> None:
    class Picks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("columns", torch.tensor([2, 0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :, self.columns]

    (operation,) = take(hand_made(Picks()), probe(built("resnet"), 1)).recording.operations
    assert operation.name == "aten::index.Tensor"


def test_a_step_without_tensors_is_refused() -> None:
    class Nothing(nn.Module):
        def forward(self, x: torch.Tensor) -> int:
            return 1

    with pytest.raises(ProblemError, match="NO_OUTPUTS"):
        take(hand_made(Nothing()), probe(built("resnet"), 1))


def test_alignment_does_not_depend_on_where_memory_lay() -> None:
    recording = recorded("yolo9").recording
    assert {value.alignment for value in recording.values} <= {1 << power for power in range(2, 10)}
    whole = [value for value in recording.values if value.offset == 0]
    assert {value.alignment for value in whole} == {64}
    assert recorder._alignment(torch.zeros(64)[1:]) == 4


def test_arguments_have_the_kind_of_the_schema() -> None:
    of = torch.ops.aten
    encoded = encode.arguments(of.add.Tensor, (torch.ones(1), torch.ones(1)), {"alpha": 2}, lambda _: 7)
    assert [(each.name, each.WhichOneof("kind")) for each in encoded] == [
        ("self", "value"),
        ("other", "value"),
        ("alpha", "integer"),
    ]
    eps = encode.argument("eps", 1, of.batch_norm.default._schema.arguments[7].type, lambda _: 0)
    assert (eps.WhichOneof("kind"), eps.real) == ("real", 1.0)  # a whole number where a float is asked for
    stride = encode.argument("stride", 2, of.convolution.default._schema.arguments[3].type, lambda _: 0)
    assert [item.integer for item in stride.list.items] == [2]
    empty = encode.argument("normalized_shape", [], of.layer_norm.default._schema.arguments[1].type, lambda _: 0)
    assert (empty.WhichOneof("kind"), len(empty.list.items)) == ("list", 0)


@pytest.mark.parametrize(
    "given",
    [torch.complex64, torch.device("meta"), torch.sparse_coo, 1j, torch.Generator()],
    ids=lambda given: str(given)[:16],
)
def test_what_has_no_form_in_recordings_is_not_encoded(given: object) -> None:
    formal = torch.ops.aten.zeros.default._schema.arguments[1].type
    with pytest.raises(encode.CannotEncodeError):
        encode.argument("given", given, formal, lambda _: 0)
