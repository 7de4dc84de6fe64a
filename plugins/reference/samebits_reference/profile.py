"""Numerics profiles: named, complete sets of switches under which PyTorch's bits are the contract.

A profile is data. Everything that decides bits stands in it and in every recording made under it, so that another
profile is another entry of the table and no fork of the code.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping

from samebits_wire.problems import Kind, Problem, ProblemError

Switch = bool | str


@dataclasses.dataclass(frozen=True)
class Profile:
    """One named set of switches. Keys of `torch` are looked up in `_SWITCHES` or are attributes below torch."""

    name: str
    environment: Mapping[str, str]  # read by libraries when they are imported or first used
    unset: tuple[str, ...]  # variables that would change bits behind the profile's back
    torch: Mapping[str, Switch]
    rules: Mapping[str, str]  # what this plugin does itself

    def settings(self) -> list[tuple[str, str]]:
        """Give everything as text, sorted by key, as recordings hold it."""
        pairs = {f"env.{key}": value for key, value in self.environment.items()}
        pairs |= {f"env.{key}": "unset" for key in self.unset}
        pairs |= {f"torch.{key}": _text(value) for key, value in self.torch.items()}
        pairs |= self.rules
        return sorted(pairs.items())

    def apply_environment(self) -> None:
        """Set the process environment. To be called before torch is imported."""
        for key in self.unset:
            os.environ.pop(key, None)
        os.environ.update(self.environment)

    def apply(self) -> None:
        """Set every switch, then look whether each one holds."""
        self.apply_environment()
        for key, value in self.torch.items():
            _write(key, value)
        self.verify()

    def verify(self) -> None:
        """Refuse to go on when a library changed a switch since `apply`."""
        wrong = [
            Problem("PROFILE_NOT_APPLIED", f"{key} is {_text(_read(key))}, not {_text(value)}", f"profile/torch.{key}")
            for key, value in self.torch.items()
            if _read(key) != value
        ]
        wrong += [
            Problem("PROFILE_NOT_APPLIED", f"{key} is {os.environ.get(key)!r}, not {value!r}", f"profile/env.{key}")
            for key, value in self.environment.items()
            if os.environ.get(key) != value
        ]
        if wrong:
            raise ProblemError(wrong, Kind.INTERNAL)


EXACT_1 = Profile(
    name="exact-1",
    environment={
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "HF_HUB_OFFLINE": "1",
        "LIBREYOLO_HUB_KERNELS": "0",
        "LIBREYOLO_KERNELS": "reference",
    },
    unset=(
        "CUBLASLT_WORKSPACE_SIZE",
        "CUDNN_ERRATA_JSON_FILE",
        "DISABLE_ADDMM_CUDA_LT",
        "LIBREYOLO_QUANT_KERNELS",
        "LIBREYOLO_TRITON_MSDA",
        "NVIDIA_TF32_OVERRIDE",
        "PYTORCH_TUNABLEOP_ENABLED",
        "TORCH_BLAS_PREFER_CUBLASLT",
        "TORCH_CUDNN_SDPA_DEPRIORITIZED",
        "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
        "TORCH_CUDNN_V8_API_DISABLED",
    ),
    torch={
        "attention.cudnn": False,
        "attention.efficient": False,
        "attention.flash": False,
        "attention.math": True,
        "attention.math_reduced_precision": False,
        "backends.cuda.matmul.allow_bf16_reduced_precision_reduction": True,
        "backends.cuda.matmul.allow_fp16_accumulation": False,
        "backends.cuda.matmul.allow_fp16_reduced_precision_reduction": True,
        "backends.cuda.matmul.allow_tf32": False,
        "backends.cudnn.allow_tf32": False,
        "backends.cudnn.benchmark": False,
        "backends.cudnn.deterministic": True,
        "backends.cudnn.enabled": True,
        "deterministic_algorithms": False,
        "fused_multi_head_attention": False,
    },
    rules={
        "autocast.cache.predict": "on",
        "autocast.cache.train": "off",
        "memory_format": "as the family builds it; inputs contiguous",
    },
)

PROFILES: Mapping[str, Profile] = {EXACT_1.name: EXACT_1}


def find(name: str) -> Profile:
    """Give a profile by name; the empty name is exact-1."""
    profile = PROFILES.get(name or EXACT_1.name)
    if profile is None:
        known = ", ".join(PROFILES)
        raise ProblemError(Problem("UNKNOWN_PROFILE", f"no profile is named {name!r}", "profile", f"known: {known}"))
    return profile


def _text(value: Switch) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else value


# Switches that are functions, not attributes: name of the reader and of the writer below torch.
_SWITCHES = {
    "attention.cudnn": ("backends.cuda.cudnn_sdp_enabled", "backends.cuda.enable_cudnn_sdp"),
    "attention.efficient": ("backends.cuda.mem_efficient_sdp_enabled", "backends.cuda.enable_mem_efficient_sdp"),
    "attention.flash": ("backends.cuda.flash_sdp_enabled", "backends.cuda.enable_flash_sdp"),
    "attention.math": ("backends.cuda.math_sdp_enabled", "backends.cuda.enable_math_sdp"),
    "attention.math_reduced_precision": (
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
        "backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    ),
    "deterministic_algorithms": ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    "fused_multi_head_attention": ("backends.mha.get_fastpath_enabled", "backends.mha.set_fastpath_enabled"),
}


def _below_torch(path: str) -> object:
    import torch

    return functools.reduce(getattr, path.split("."), torch)


def _read(key: str) -> Switch:
    if key in _SWITCHES:
        return _below_torch(_SWITCHES[key][0])()  # type: ignore[operator]
    return _below_torch(key)  # type: ignore[return-value]


def _write(key: str, value: Switch) -> None:
    if key in _SWITCHES:
        _below_torch(_SWITCHES[key][1])(value)  # type: ignore[operator]
        return
    owner, _, attribute = key.rpartition(".")
    setattr(_below_torch(owner), attribute, value)
