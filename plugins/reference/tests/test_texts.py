"""Tests of what is kept of text towers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from samebits_reference import texts


class Tower:
    """Encodes a text as its length times a weight, and counts how often it did."""

    device = "cpu"
    asked = 0

    def __init__(self, weight: torch.Tensor) -> None:
        """Take the weight."""
        self.weight = weight

    def _encode_texts(self, given: list[str], chunk: int = 256) -> torch.Tensor:
        Tower.asked += 1
        return torch.stack([self.weight * len(text) for text in given])


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Tower.asked = 0


def encode(folder: Path, weight: float, given: list[str]) -> torch.Tensor:
    """Encode in what stands for a process."""
    state = {"w": torch.tensor([weight, -0.0])}
    made = texts.remembering(Tower, state, folder)(state["w"])
    assert isinstance(made, Tower)
    assert type(made).__name__ == "Tower"
    return made._encode_texts(given)


def test_texts_are_encoded_once(tmp_path: Path) -> None:
    first = encode(tmp_path, 0.5, ["a", "bcd"])
    second = encode(tmp_path, 0.5, ["a", "bcd"])
    assert first.tolist() == [[0.5, 0.0], [1.5, 0.0]]
    assert torch.equal(first.view(torch.int32), second.view(torch.int32))
    assert Tower.asked == 1


def test_other_weights_and_texts_are_others(tmp_path: Path) -> None:
    encode(tmp_path, 0.5, ["a"])
    assert encode(tmp_path, 0.25, ["a"])[0, 0] == 0.25
    assert encode(tmp_path, 0.5, ["ab"])[0, 0] == 1
    assert Tower.asked == 3


@pytest.mark.parametrize("damage", [b"", b"\0" * 100])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    good = encode(tmp_path, 0.5, ["abc"])
    (file,) = tmp_path.glob("*.safetensors")
    whole = file.read_bytes()
    file.write_bytes(damage or whole[:-4] + b"\x01\x02\x03\x04")
    assert torch.equal(encode(tmp_path, 0.5, ["abc"]), good)
    assert Tower.asked == 2
    assert file.read_bytes() == whole


def test_no_folder_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert encode(tmp_path / "file" / "below", 1.0, ["a"])[0, 0] == 1


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, mode: str = "r") -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    def full(*_args: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device")

    with monkeypatch.context() as patched:  # whoever runs tests may write everywhere
        patched.setattr(Path, "open", refuse)
        patched.setattr(texts, "save_file", full)
        assert encode(tmp_path, 1.0, ["a"])[0, 0] == 1
    assert not list(tmp_path.iterdir())
    assert encode(tmp_path, 1.0, ["a"])[0, 0] == 1
    assert Tower.asked == 2


def test_a_folder_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    for _ in range(2):
        encode(tmp_path / "a" / "b", 0.5, ["a"])
    assert Tower.asked == 1
    assert [file.suffix for file in sorted((tmp_path / "a" / "b").iterdir())] == [".lock", ".safetensors"]


def test_what_numbers_depend_on_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(given: list[str], state: dict[str, torch.Tensor], chunk: int = 256) -> int:
        before = Tower.asked
        texts.remembering(Tower, state, tmp_path)(torch.tensor([1.0, 2.0]))._encode_texts(given, chunk)
        return Tower.asked - before

    one = torch.tensor([1.0, 2.0])
    assert asked(["a", "b"], {"w": one}) == 1
    assert asked(["a", "b"], {"w": one.clone()}) == 0
    assert asked(["ab"], {"w": one}) == 1
    assert asked(["b", "a"], {"w": one}) == 1
    assert asked(["a", "b"], {"w": one}, 2) == 1
    assert asked(["a", "b"], {"v": one}) == 1
    assert asked(["a", "b"], {"w": one.view(2, 1)}) == 1
    assert asked(["a", "b"], {"w": one.view(torch.int32)}) == 1
    for change in (
        (torch, "__version__", "9.9.9"),
        (torch, "get_num_threads", lambda: 77),
        (torch.backends.cpu, "get_cpu_capability", lambda: "NONE"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*change)
            assert asked(["a", "b"], {"w": one}) == 1
    assert asked(["a", "b"], {"w": one}) == 0


def test_what_another_device_makes_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tower, "device", "cuda:0")
    for _ in range(2):
        assert encode(tmp_path, 0.5, ["ab"])[0, 0] == 1
    assert Tower.asked == 2
    assert not list(tmp_path.iterdir())


def test_no_unfinished_file_stays(tmp_path: Path) -> None:
    encode(tmp_path, 0.5, ["a"])
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".lock", ".safetensors"]
