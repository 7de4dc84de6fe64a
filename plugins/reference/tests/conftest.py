from __future__ import annotations

from samebits_reference import profile

# Before torch is imported anywhere.
profile.EXACT_1.apply_environment()

import functools  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
from collections.abc import Iterable, Iterator  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402

from samebits_reference import families, recorder  # noqa: E402
from samebits_reference.families import Built, Order  # noqa: E402
from samebits_wire import arm_pb2 as wire  # noqa: E402
from samebits_wire.memory import CONTROL_BYTES, Memory, dtype_name  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    profile.EXACT_1.apply()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@functools.cache
def built(family: str, precision: str = "fp32", imgsz: int = 64, batch: int = 1, device: str = "cpu") -> Built:
    """A family that has run once. Shared by tests: they may not change it."""
    ready = families.build(Order(family, precision=precision, imgsz=imgsz, batch=batch, device=device))
    ready.step(probe(ready, 0))
    return ready


def hand_made(module: torch.nn.Module) -> Built:
    """A family of a module of ours, in the place of resnet's. It has not run yet."""
    real = built("resnet")
    return Built(real.cell, real.order, real.device, module.eval(), "none", module, {})


def probe(of: Built, seed: int) -> torch.Tensor:
    """Seeded noise as an image batch, on the family's device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(of.input_sizes, generator=generator).to(of.device)


def named() -> recorder.Named:
    return recorder.Named("exact-1", profile.EXACT_1.settings(), {"torch": torch.__version__})


def take(of: Built, images: torch.Tensor) -> recorder.Taken:
    """A recording with a small header."""
    return recorder.record(of, images, named())


@functools.cache
def recorded(family: str, precision: str = "fp32") -> recorder.Taken:
    """A recording of a small image. Shared by tests."""
    of = built(family, precision)
    return take(of, probe(of, 1))


class HostMemory:
    """The host's side of the shared memory: places tensors and files one after the other."""

    def __init__(self, size: int) -> None:
        self._descriptor = os.memfd_create("samebits-test")
        self._next = CONTROL_BYTES
        os.ftruncate(self._descriptor, size)
        self.memory = Memory(self._descriptor)
        self.memory.attach(CONTROL_BYTES, size - CONTROL_BYTES)

    def region(self, length: int) -> wire.Region:
        place = wire.Region(offset=self._next, length=length)
        self._next += (length + 63) // 64 * 64
        return place

    def put(self, data: bytes) -> wire.Region:
        place = self.region(len(data))
        self.memory.view(place)[:] = data
        return place

    def bank(self, specs: Iterable[wire.TensorSpec]) -> wire.Bank:
        return wire.Bank(tensors=[wire.PlacedTensor(spec=spec, region=self.region(_length(spec))) for spec in specs])

    def tensors(self, bank: wire.Bank) -> list[torch.Tensor]:
        return [self.memory.placed(placed) for placed in bank.tensors]

    def close(self) -> None:
        os.close(self._descriptor)


def _length(spec: wire.TensorSpec) -> int:
    return math.prod(spec.sizes) * getattr(torch, dtype_name(spec.dtype)).itemsize


@pytest.fixture
def host() -> Iterator[HostMemory]:
    memory = HostMemory(256 << 20)
    yield memory
    memory.close()


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Compare integer views: -0.0 is not 0.0, and payloads of NaN count."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.flatten().view(torch.uint8), b.flatten().view(torch.uint8))
