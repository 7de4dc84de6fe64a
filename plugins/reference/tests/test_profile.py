from __future__ import annotations

import os

import pytest
import torch

from samebits_reference import profile
from samebits_wire.digest import digest_bytes
from samebits_wire.problems import Kind, ProblemError


@pytest.fixture(autouse=True)
def restore() -> object:
    yield
    profile.EXACT_1.apply()


def test_apply_sets_every_switch() -> None:
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.enable_flash_sdp(True)
    torch.backends.mha.set_fastpath_enabled(True)
    os.environ["NVIDIA_TF32_OVERRIDE"] = "1"
    profile.find("exact-1").apply()
    assert not torch.backends.cudnn.benchmark
    assert not torch.backends.cuda.flash_sdp_enabled()
    assert not torch.backends.mha.get_fastpath_enabled()
    assert "NVIDIA_TF32_OVERRIDE" not in os.environ
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_verify_names_every_switch_that_moved() -> None:
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.deterministic = False
    os.environ["LIBREYOLO_KERNELS"] = "auto"
    with pytest.raises(ProblemError) as refusal:
        profile.EXACT_1.verify()
    assert sorted(problem.path for problem in refusal.value.problems) == [
        "profile/env.LIBREYOLO_KERNELS",
        "profile/torch.backends.cudnn.allow_tf32",
        "profile/torch.backends.cudnn.deterministic",
    ]
    assert {problem.reason for problem in refusal.value.problems} == {"PROFILE_NOT_APPLIED"}


def test_unknown_profile_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"UNKNOWN_PROFILE.*exact-1"):
        profile.find("fast-1")


def test_settings_are_sorted_text() -> None:
    settings = profile.EXACT_1.settings()
    assert settings == sorted(settings)
    assert ("env.CUBLAS_WORKSPACE_CONFIG", ":4096:8") in settings
    assert ("torch.attention.math", "on") in settings


def test_a_profile_of_other_switches_has_another_name() -> None:
    digest = "8e95f5c03e50ad5269da355e5ea69887df20ed8e16d43af2d3f8a14b4a1af602"
    assert digest_bytes(repr(profile.EXACT_1.settings()).encode()) == digest
    assert profile.find("") is profile.find("exact-1") is profile.EXACT_1


@pytest.mark.parametrize("key", sorted(profile.EXACT_1.torch))
def test_every_switch_is_written_and_read(key: str) -> None:
    value = profile.EXACT_1.torch[key]
    assert isinstance(value, bool)
    profile._write(key, not value)
    with pytest.raises(ProblemError) as refusal:
        profile.EXACT_1.verify()
    (problem,) = refusal.value.problems
    assert (problem.path, refusal.value.kind) == (f"profile/torch.{key}", Kind.INTERNAL)
    said = ("off", "on")
    assert problem.summary == f"{key} is {said[not value]}, not {said[value]}"
    profile.EXACT_1.apply()
