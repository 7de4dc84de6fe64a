from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import samebits


def test_missing_files(data: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        samebits.load(tmp_path / "recording.pb", data / "tiny" / "weights.safetensors")
    with pytest.raises(FileNotFoundError, match="weights"):
        samebits.load(data / "tiny" / "recording.pb", tmp_path / "weights")
    with pytest.raises(FileNotFoundError):
        samebits.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        samebits.load(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "recording.pb"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(PermissionError):
        samebits.load(path, data / "tiny" / "weights.safetensors")


def test_a_recording_alone(data: Path) -> None:
    with pytest.raises(TypeError, match="weights"):
        samebits.load(data / "tiny" / "recording.pb")


@pytest.mark.parametrize("wrong", [None, 3, {}, [b""]])
def test_neither_a_path_nor_bytes(data: Path, wrong: Any) -> None:
    kind = type(wrong).__name__
    for load in (samebits.load, samebits.load_trainer):
        with pytest.raises(TypeError, match=f"recording is a path or bytes, not {kind}"):
            load(wrong, data / "tiny" / "weights.safetensors")
    with samebits.load(data / "tiny") as model, pytest.raises(TypeError, match=f"weights is a path or bytes, not {kind}"):
        model.load_weights(wrong)
    with samebits.load_trainer(data / "train") as trainer:
        with pytest.raises(TypeError, match=f"checkpoint is a path or bytes, not {kind}"):
            trainer.restore(wrong)
        with pytest.raises(TypeError, match=f"recording is a path or bytes, not {kind}"):
            trainer.add_recording(wrong)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_torn_recordings(data: Path, cut: int) -> None:
    recording = (data / "tiny" / "recording.pb").read_bytes()
    with pytest.raises(samebits.RecordingError) as caught:
        samebits.load(recording[:cut], data / "tiny" / "weights.safetensors")
    assert caught.value.problems
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda raw: raw[:-1], "BAD_OFFSETS"),
        (lambda raw: b"", "TRUNCATED"),
        (lambda raw: b"PK\x03\x04" + raw, "NOT_SAFETENSORS"),  # as torch.save writes
        (lambda raw: raw.replace(b"conv.weight", b"conv.wEight"), "MISSING_WEIGHT"),
        (lambda raw: raw.replace(b'"F32"', b'"I32"'), "WRONG_DTYPE"),
        (lambda raw: b"\xff" * 8 + raw, "HEADER_TOO_LARGE"),
    ],
)
def test_unsound_weights(data: Path, damage: Callable[[bytes], bytes], reason: str) -> None:
    weights = (data / "tiny" / "weights.safetensors").read_bytes()
    with pytest.raises(samebits.WeightsError) as caught:
        samebits.load(data / "tiny" / "recording.pb", damage(weights))
    assert reason in caught.value.reasons
    assert all(problem.path.startswith("weights") for problem in caught.value.problems)


def test_every_weight_that_is_missing_is_named(data: Path) -> None:
    empty = (2).to_bytes(8, "little") + b"{}"
    with pytest.raises(samebits.WeightsError) as caught:
        samebits.load(data / "tiny" / "recording.pb", empty)
    assert {p.path for p in caught.value.problems} >= {"weights/conv.weight", "weights/bn.bias", "weights/shortcut.bias"}
    assert set(caught.value.reasons) == {"MISSING_WEIGHT"}


def test_every_unknown_operation_is_named(data: Path) -> None:
    with pytest.raises(samebits.UnsupportedError) as caught:
        samebits.load(data / "unsupported")
    assert isinstance(caught.value, NotImplementedError)
    assert caught.value.reasons == ["UNKNOWN_OPERATION"] * 2
    assert "aten::frobnicate" in caught.value.problems[0].summary
    assert caught.value.problems[1].path == "operations[1]"


def test_recordings_of_the_other_mode(data: Path) -> None:
    with pytest.raises(samebits.RecordingError) as caught:
        samebits.load(data / "train")
    assert caught.value.reasons == ["WRONG_MODE"]
    with pytest.raises(samebits.RecordingError) as caught:
        samebits.load_trainer(data / "tiny")
    assert caught.value.reasons == ["WRONG_MODE"]


@pytest.mark.parametrize("device", ["", "gpu", "cuda:", "cuda:-1", "cuda:01", "host:0", "\N{SNOWMAN}"])
def test_unknown_devices(data: Path, device: str) -> None:
    with pytest.raises(samebits.DeviceError) as caught:
        samebits.load(data / "tiny", device=device)
    assert caught.value.reasons == ["UNKNOWN_DEVICE"]


def test_a_device_that_is_not_here(data: Path) -> None:
    with pytest.raises(samebits.DeviceError) as caught:
        samebits.load(data / "tiny", device="cuda:97")
    assert set(caught.value.reasons) <= {"NO_DRIVER", "NO_GPU", "NO_LIBRARY"}


@pytest.mark.parametrize("cuda_graph", ["yes", "", "force", None, 1, 0])
def test_wrong_modes_of_graphs(tmp_path: Path, cuda_graph: Any) -> None:
    """Before any work: not even the files are looked for."""
    wrong = samebits.InputError if isinstance(cuda_graph, str) else TypeError
    for load in (samebits.load, samebits.load_trainer):
        with pytest.raises(wrong, match="cuda_graph"):
            load(tmp_path / "none", b"", cuda_graph=cuda_graph)


def test_other_names_of_the_host(data: Path) -> None:
    with samebits.load(data / "tiny", device="cpu") as model:
        assert model.device == "host"


def test_devices_are_listed() -> None:
    found = {device.name: device for device in samebits.devices()}
    assert found["host"].usable
    assert found["host"].environment["host.cpu"]
    assert found["cuda:0"].usable or found["cuda:0"].problem


NO_COMPILER = """
import os, samebits
try:
    samebits.load(os.environ["DATA"] + "/tiny")
except samebits.DeviceError as error:
    print(error.reasons, error.problems[0].detail)
"""


def test_a_machine_without_a_compiler(python: Callable[..., Any], tmp_path: Path) -> None:
    done = python(NO_COMPILER, PATH=str(tmp_path), CXX="", SAMEBITS_CACHE=str(tmp_path))
    assert done.stdout.startswith("['NO_COMPILER'] install g++"), done


def test_errors_can_be_pickled(data: Path) -> None:
    with pytest.raises(samebits.UnsupportedError) as caught:
        samebits.load(data / "unsupported")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is samebits.UnsupportedError
    assert str(again) == str(caught.value)
    assert again.problems == caught.value.problems


def test_variables_are_looked_up_at_each_load(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's copy of the environment is from when it was loaded; what comes after must not be lost."""
    samebits.load(data / "tiny").close()
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path))
    with samebits.load(data / "tiny"):
        assert any((tmp_path / "host").iterdir())
    monkeypatch.setenv("SAMEBITS_THREADS", "none")
    with pytest.raises(samebits.SamebitsError, match="SAMEBITS_THREADS"):
        samebits.load(data / "tiny")
