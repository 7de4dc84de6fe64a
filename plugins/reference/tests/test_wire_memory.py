from __future__ import annotations

import mmap
import os
import pathlib
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

import samebits_wire
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2
from samebits_wire.memory import CONTROL_BYTES, Memory, dtype_name
from samebits_wire.problems import Kind, ProblemError

PAGE = mmap.ALLOCATIONGRANULARITY


@pytest.fixture
def descriptor() -> Iterator[int]:
    fd = os.memfd_create("test")
    os.ftruncate(fd, CONTROL_BYTES + 4 * PAGE)
    yield fd
    os.close(fd)


@pytest.fixture
def memory(descriptor: int) -> Memory:
    memory = Memory(descriptor)
    memory.attach(CONTROL_BYTES, 2 * PAGE)
    return memory


def region(offset: int, length: int) -> wire.Region:
    return wire.Region(offset=offset, length=length)


def test_views_are_shared_and_stay_valid_when_the_memory_grows(memory: Memory, descriptor: int) -> None:
    view = memory.view(region(CONTROL_BYTES + 64, 100))
    memory.attach(CONTROL_BYTES + 2 * PAGE, 2 * PAGE)
    os.pwrite(descriptor, b"hello", CONTROL_BYTES + 64)
    assert bytes(view[:5]) == b"hello"
    memory.view(region(CONTROL_BYTES + 2 * PAGE, 3))[:] = b"far"
    assert os.pread(descriptor, 3, CONTROL_BYTES + 2 * PAGE) == b"far"
    assert [len(part) for part in memory.ranges()] == [2 * PAGE, 2 * PAGE]


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        pytest.param(0, 64, id="control block"),
        pytest.param(CONTROL_BYTES + 1, 8, id="odd offset"),
        pytest.param(CONTROL_BYTES, 2 * PAGE + 1, id="past the range"),
        pytest.param(CONTROL_BYTES + 2 * PAGE, 64, id="not attached"),
        pytest.param(1 << 60, 1 << 60, id="absurd"),
    ],
)
def test_regions_are_checked(memory: Memory, offset: int, length: int) -> None:
    with pytest.raises(ProblemError) as caught:
        memory.view(region(offset, length))
    assert caught.value.problems[0].reason == "REGION"


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        pytest.param(0, PAGE, id="control block"),
        pytest.param(CONTROL_BYTES + 64, PAGE, id="no page"),
        pytest.param(CONTROL_BYTES, 0, id="empty"),
        pytest.param(CONTROL_BYTES, 5 * PAGE, id="past the end"),
    ],
)
def test_ranges_are_checked(descriptor: int, offset: int, length: int) -> None:
    with pytest.raises(ProblemError, match="cannot attach"):
        Memory(descriptor).attach(offset, length)


def test_tensors_lie_on_the_memory(memory: Memory, descriptor: int) -> None:
    torch = pytest.importorskip("torch")
    os.pwrite(descriptor, struct.pack("<6f", *range(6)), CONTROL_BYTES + 128)
    tensor = memory.tensor(region(CONTROL_BYTES + 128, 24), recording_pb2.DTYPE_FLOAT32, [2, 3])
    assert torch.equal(tensor, torch.arange(6, dtype=torch.float32).view(2, 3))
    tensor.add_(1)
    assert struct.unpack("<f", os.pread(descriptor, 4, CONTROL_BYTES + 128)) == (1.0,)
    assert memory.tensor(region(CONTROL_BYTES, 2), "bfloat16", []).shape == ()
    assert memory.tensor(region(CONTROL_BYTES, 0), torch.int64, [0, 7]).shape == (0, 7)
    spec = wire.TensorSpec(name="x", dtype=recording_pb2.DTYPE_BOOL, sizes=[3])
    assert memory.placed(wire.PlacedTensor(spec=spec, region=region(CONTROL_BYTES, 3))).dtype == torch.bool


@pytest.mark.parametrize(("name", "number"), list(recording_pb2.DType.items())[1:])
def test_every_dtype_has_its_size(memory: Memory, name: str, number: int) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name.removeprefix("DTYPE_").lower())
    assert dtype_name(number) == dtype_name(dtype)
    assert memory.tensor(region(CONTROL_BYTES, 3 * dtype.itemsize), number, [3]).dtype == dtype


def test_memory_that_cannot_be_mapped_is_refused(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> mmap.mmap:
        raise OSError(12, "Cannot allocate memory")

    with monkeypatch.context() as patched:
        patched.setattr("samebits_wire.memory.mmap.mmap", full)
        with pytest.raises(ProblemError, match=r"SHARED_MEMORY.*Cannot allocate memory") as caught:
            memory.attach(CONTROL_BYTES + 2 * PAGE, PAGE)
    assert caught.value.kind is Kind.OUT_OF_MEMORY
    assert len(memory.ranges()) == 1


def test_tensors_must_fill_their_regions(memory: Memory) -> None:
    pytest.importorskip("torch")
    with pytest.raises(ProblemError, match=r"float32\[5\] takes 20 bytes, its region has 24"):
        memory.tensor(region(CONTROL_BYTES, 24), "float32", [5])
    with pytest.raises(ProblemError, match="cannot be"):
        memory.tensor(region(CONTROL_BYTES, 24), "float32", [-2, -3])
    spec = wire.TensorSpec(name="scores", dtype=recording_pb2.DTYPE_INT8, sizes=[1])
    with pytest.raises(ProblemError) as caught:
        memory.placed(wire.PlacedTensor(spec=spec, region=region(CONTROL_BYTES, 2)))
    assert caught.value.problems[0].path == "scores"


@pytest.mark.parametrize("bad", [0, 11, -1, "complex64", "DTYPE_FLOAT32"])
def test_dtypes_are_checked(bad: int | str) -> None:
    with pytest.raises(ProblemError, match="not a dtype"):
        dtype_name(bad)


def test_serving_does_not_import_torch() -> None:
    code = "import sys, samebits_wire.serve; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    folder = pathlib.Path(samebits_wire.__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, check=False).returncode == 0
