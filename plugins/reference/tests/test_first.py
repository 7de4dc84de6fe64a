"""The first prediction of a process: it must be the prediction that the arms make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from conftest import built, probe

from samebits_reference import first, weights
from samebits_reference.families import flatten
from samebits_wire.digest import digest_tensor


def files(folder: Path) -> tuple[Path, Path]:
    of = built("resnet", imgsz=32)
    weights_file, images_file = folder / "weights.safetensors", folder / "images"
    weights_file.write_bytes(weights.encode(of.weights()))
    images_file.write_bytes(probe(of, 3).numpy().tobytes())
    return weights_file, images_file


def test_it_predicts_what_the_arms_predict(tmp_path: Path) -> None:
    weights_file, images_file = files(tmp_path)
    began = time.monotonic_ns()
    command = [sys.executable, "-m", "samebits_reference.first", "--family", "resnet", "--imgsz", "32"]
    command += ["--weights", str(weights_file), "--images", str(images_file), "--began", str(began)]
    here = os.environ | {"PYTHONPATH": str(Path(first.__file__).parents[1]), "SAMEBITS_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=here, check=True)
    took = (time.monotonic_ns() - began) / 1e6
    said = json.loads(done.stdout)
    of = built("resnet", imgsz=32)
    assert said["outputs"] == {name: digest_tensor(tensor) for name, tensor in flatten(of.step(probe(of, 3)))}
    assert [stage["name"] for stage in said["stages"]] == ["start", "imports", "construct", "weights", "forward"]
    assert all(stage["ms"] > 0 for stage in said["stages"])
    assert sum(stage["ms"] for stage in said["stages"]) < took
    assert said["max_rss_bytes"] > 50 << 20


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--family", "nosuch"], "UNKNOWN_FAMILY"),
        (["--family", "resnet", "--device", "cuda:0"], "NO_CUDA"),
        (["--family", "resnet", "--profile", "fast"], "UNKNOWN_PROFILE"),
    ],
)
def test_what_is_refused_is_said(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available() and says == "NO_CUDA":
        pytest.skip("there is one")
    assert first.main([*arguments, "--weights", "none", "--images", "none"]) == 2
    assert says in capsys.readouterr().err


def test_other_weights_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights_file, images_file = files(tmp_path)
    weights_file.write_bytes(b"not weights")
    assert (
        first.main(["--family", "resnet", "--imgsz", "32", "--weights", str(weights_file), "--images", str(images_file)])
        == 2
    )
    assert "BAD_WEIGHTS_FILE" in capsys.readouterr().err
