"""What is here: versions of everything that decides bits, as recordings and certificates keep it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import platform

import torch


def describe(device: torch.device) -> dict[str, str]:
    """Give the environment of steps on a device. What is not known is left out."""
    found = {
        "libreyolo": _distribution("libreyolo"),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_revision": str(torch.version.git_version),
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {
            "capability": f"{properties.major}.{properties.minor}",
            "cublas": _cublas(),
            "cuda": str(torch.version.cuda),
            "cudnn": _cudnn(),
            "driver": _driver(),
            "gpu": properties.name,
            "multiprocessors": str(properties.multi_processor_count),
            "nvrtc": _nvrtc(),
        }
    else:
        found |= {
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "machine": platform.machine(),
            "threads": str(torch.get_num_threads()),
        }
    return {key: value for key, value in sorted(found.items()) if value}


def devices() -> list[str]:
    """Give the devices that steps can run on."""
    return [*(f"cuda:{index}" for index in range(torch.cuda.device_count())), "cpu"]


def _distribution(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cudnn() -> str:
    version = torch.backends.cudnn.version() or 0
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}" if version else ""


def _cublas() -> str:
    # The library that torch has loaded answers, not a package list: both may be there in several versions.
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(f"libcublas.so.{_cuda_major()}")
        parts = []
        for part in range(3):  # major, minor, patch
            value = ctypes.c_int()
            if library.cublasGetProperty(part, ctypes.byref(value)):
                return ""
            parts.append(str(value.value))
        return ".".join(parts)
    return ""


def _nvrtc() -> str:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(f"libnvrtc.so.{_cuda_major()}")
        major, minor = ctypes.c_int(), ctypes.c_int()
        if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
            return f"{major.value}.{minor.value}"
    return ""


def _driver() -> str:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        if library.nvmlInit_v2() == 0:
            try:
                if library.nvmlSystemGetDriverVersion(text, len(text)) == 0:
                    return text.value.decode()
            finally:
                library.nvmlShutdown()
    return ""


def _cuda_major() -> str:
    return str(torch.version.cuda).partition(".")[0]
