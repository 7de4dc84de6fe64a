from __future__ import annotations

import os

import pytest
import torch

from samebits_reference import profile
from samebits_wire.problems import ProblemError


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
