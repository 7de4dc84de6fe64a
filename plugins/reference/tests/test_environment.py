"""Versions of what decides bits, as libraries that stand in tell them."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from samebits_reference import environment


def library(**functions: Callable[..., int]) -> types.SimpleNamespace:
    return types.SimpleNamespace(**functions)


def cublas(part: int, value: Any) -> int:
    value._obj.value = (13, 1, 7)[part]
    return 0


def nvrtc(major: Any, minor: Any) -> int:
    major._obj.value, minor._obj.value = 13, 0
    return 0


class Driver:
    """libnvidia-ml, with a status of each call."""

    def __init__(self, init: int = 0, version: int = 0) -> None:
        self._init, self._version = init, version
        self.calls: list[str] = []

    def nvmlInit_v2(self) -> int:  # noqa: N802 (the library's names)
        self.calls.append("init")
        return self._init

    def nvmlSystemGetDriverVersion(self, text: Any, length: int) -> int:  # noqa: N802
        self.calls.append("version")
        assert length == len(text)
        text.value = b"580.159.04"
        return self._version

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.calls.append("shutdown")


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Libraries of CUDA 13 by name; those that are not there cannot be loaded."""
    there: dict[str, Any] = {
        "libcublas.so.13": library(cublasGetProperty=cublas),
        "libnvrtc.so.13": library(nvrtcVersion=nvrtc),
        "libnvidia-ml.so.1": Driver(),
    }

    def load(name: str) -> Any:
        if name not in there:
            raise OSError(f"{name}: cannot open shared object file")
        return there[name]

    gpu = types.SimpleNamespace(major=9, minor=0, name="NVIDIA H200", multi_processor_count=132)
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91900)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: gpu)
    return there


def cuda() -> dict[str, str]:
    return environment.describe(torch.device("cuda", 0))


def test_what_decides_the_bits_of_a_gpu(libraries: dict[str, Any]) -> None:
    found = cuda()
    assert list(found) == sorted(found)
    assert found == {
        "capability": "9.0",
        "cublas": "13.1.7",
        "cuda": "13.0",
        "cudnn": "9.19.0",
        "driver": "580.159.04",
        "gpu": "NVIDIA H200",
        "libreyolo": importlib.metadata.version("libreyolo"),
        "multiprocessors": "132",
        "nvrtc": "13.0",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_revision": torch.version.git_version,
    }
    assert libraries["libnvidia-ml.so.1"].calls == ["init", "version", "shutdown"]


def test_what_decides_the_bits_of_a_cpu() -> None:
    found = environment.describe(torch.device("cpu"))
    assert found.keys() == {"cpu_capability", "libreyolo", "machine", "python", "threads", "torch", "torch_revision"}
    assert found["threads"] == str(torch.get_num_threads())


@pytest.mark.parametrize(
    ("name", "stands_in", "lacks"),
    [
        ("libcublas.so.13", library(cublasGetProperty=lambda part, _value: part), "cublas"),
        ("libcublas.so.13", library(), "cublas"),
        ("libcublas.so.13", None, "cublas"),
        ("libnvrtc.so.13", library(nvrtcVersion=lambda _major, _minor: 1), "nvrtc"),
        ("libnvrtc.so.13", library(), "nvrtc"),
        ("libnvrtc.so.13", None, "nvrtc"),
        ("libnvidia-ml.so.1", Driver(init=9), "driver"),
        ("libnvidia-ml.so.1", Driver(version=9), "driver"),
        ("libnvidia-ml.so.1", library(), "driver"),
        ("libnvidia-ml.so.1", None, "driver"),
    ],
)
def test_what_is_not_known_is_left_out(libraries: dict[str, Any], name: str, stands_in: Any, lacks: str) -> None:
    known = cuda().keys()
    libraries[name] = stands_in
    if stands_in is None:
        del libraries[name]
    assert known - cuda().keys() == {lacks}
    if isinstance(stands_in, Driver):  # it is shut down where it was started
        assert stands_in.calls in (["init"], ["init", "version", "shutdown"])


def test_packages_that_are_not_there_are_left_out(libraries: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: None)
    assert {"libreyolo", "cudnn"}.isdisjoint(cuda())


def test_every_gpu_is_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert environment.devices() == ["cuda:0", "cuda:1", "cpu"]
