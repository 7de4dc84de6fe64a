from __future__ import annotations

import struct

import pytest
import torch
from conftest import built, recorded, same_bits

from samebits_reference import families, weights
from samebits_reference.families import Order
from samebits_wire.problems import ProblemError

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES)
def test_files_keep_bits(dtype: torch.dtype) -> None:
    tensors = {"a.b": torch.arange(6).reshape(2, 3).to(dtype), "scalar": torch.ones((), dtype=dtype)}
    back = weights.decode(weights.encode(tensors))
    assert back.keys() == tensors.keys()
    assert all(same_bits(back[name], tensor) for name, tensor in tensors.items())


def test_files_do_not_depend_on_the_order_of_entries() -> None:
    one, two = torch.ones(3), torch.zeros(2, dtype=torch.int64)
    assert weights.encode({"a": one, "b": two}) == weights.encode({"b": two, "a": one})


def test_a_recordings_weights_cover_every_storage_that_is_read() -> None:
    taken = recorded("yolo9", "bf16")
    back = weights.decode(weights.encode(taken.weights))
    for storage in taken.recording.storages:
        if storage.name and storage.name != "images":
            assert back[storage.name].numel() * back[storage.name].element_size() == storage.bytes


def header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


HOSTILE = {
    "empty": b"",
    "short": b"\x01\x00",
    "huge header": b"\xff" * 8 + b"{}",
    "header beyond the end": struct.pack("<Q", 100) + b"{}",
    "no JSON": header(b"not json"),
    "no object": header(b"[1, 2]"),
    "unknown dtype": header(b'{"a":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}}') + b"\0" * 4,
    "offsets beyond the end": header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'),
    "offsets reversed": header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}') + b"\0" * 4,
    "shape and bytes disagree": header(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}') + b"\0" * 4,
    "overflowing shape": header(b'{"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,4]}}') + b"\0" * 4,
    "bytes nobody claims": header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}') + b"\0" * 8,
    "overlap": header(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    )
    + b"\0" * 4,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(data: bytes) -> None:
    with pytest.raises(ProblemError, match="BAD_WEIGHTS_FILE"):
        weights.decode(data)


def test_every_torn_file_is_refused() -> None:
    whole = weights.encode({"a": torch.ones(5), "b": torch.zeros(2, 2, dtype=torch.int64)})
    for length in range(len(whole)):
        with pytest.raises(ProblemError, match="BAD_WEIGHTS_FILE"):
            weights.decode(whole[:length])


def test_everything_wrong_with_weights_is_named_at_once_and_nothing_is_loaded() -> None:
    of = families.build(Order("resnet", imgsz=64))
    before = of.weights()["fc.weight"].clone()
    given = {name: torch.zeros_like(tensor) for name, tensor in of.weights().items()}
    given["conv1.weight"] = torch.zeros(64, 3, 7, 8)
    given["fc.bias"] = given["fc.bias"].half()
    given["fc.extra"] = torch.zeros(1)
    given["constant.0"] = torch.zeros(1)
    del given["bn1.weight"]
    with pytest.raises(ProblemError) as refusal:
        of.load(given, {"bn1.weight", "conv1.weight"})
    assert [(problem.reason, problem.path) for problem in refusal.value.problems] == [
        ("MISSING_WEIGHT", "weights/bn1.weight"),
        ("WRONG_SHAPE", "weights/conv1.weight"),
        ("WRONG_DTYPE", "weights/fc.bias"),
        ("UNEXPECTED_WEIGHT", "weights/fc.extra"),
    ]
    assert same_bits(of.weights()["fc.weight"], before)


def test_weights_are_loaded_where_they_are() -> None:
    of = families.build(Order("resnet", imgsz=64))
    other = {name: tensor.clone() for name, tensor in families.build(Order("resnet", imgsz=64, seed=1)).weights().items()}
    address = of.module.conv1.weight.data_ptr()
    of.load(other, other.keys())
    assert of.module.conv1.weight.data_ptr() == address
    assert all(same_bits(tensor, other[name]) for name, tensor in of.weights().items())


def test_whole_storages_of_views_are_flat() -> None:
    base = torch.arange(6.0)
    assert weights.whole_storage(base[2:]).tolist() == base.tolist()
    assert weights.whole_storage(base.view(2, 3).t()).shape == (6,)
    assert weights.whole_storage(base.view(2, 3)).shape == (2, 3)


def test_buffers_left_out_of_state_dict_are_weights_too() -> None:
    assert "head.dfl.project" in built("yolo9").weights()
