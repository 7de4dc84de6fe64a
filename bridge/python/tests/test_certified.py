"""On a GPU, with programs of this tree: `parity certify` signs a cell, and the package replays it. Run with `-m gpu`."""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

import samebits

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[3]
PARITY = ROOT / "bin" / "parity"
DEVICE = "cuda:0"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.skipif(not PARITY.exists(), reason="bin/parity is not built"),
]


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a key, a certificate of resnet-18 and two of its recordings, of which one is not certified."""
    folder = tmp_path_factory.mktemp("certified")
    env = {**os.environ, "SAMEBITS_KEYS": str(folder / "keys")}
    for command in (
        "keys new tester",
        f"certify resnet --imgsz 224 --precision fp32 --device {DEVICE} --output {folder / 'certificates'}",
        f"record resnet --imgsz 224 --precision fp32 --device {DEVICE} -o {folder / 'resnet'}",
        f"record resnet --imgsz 192 --precision fp32 --device {DEVICE} -o {folder / 'small'}",
    ):
        done = subprocess.run(
            [str(PARITY), *command.split()], cwd=ROOT, env=env, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return folder


@pytest.fixture(autouse=True)
def trusted(certified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEBITS_KEYS", str(certified / "keys"))
    monkeypatch.setenv("SAMEBITS_CERTIFICATES", str(certified / "certificates"))


def load(certified: Path, cuda_graph: Any) -> samebits.Model:
    return samebits.load(certified / "resnet", device=DEVICE, cuda_graph=cuda_graph)


def images(seed: int) -> Any:
    return torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def test_replays_have_eagers_bits(certified: Path) -> None:
    with load(certified, False) as eager, load(certified, True) as graph, load(certified, "auto") as auto:
        assert graph.graph_info().supported
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(8):
                torch.cuda._sleep(2_000_000)
                x = images(i)
                want = eager.predict(x)["output"]
                for model in (graph, auto):
                    assert torch.equal(model.predict(x)["output"], want)
        info, later = graph.graph_info(), auto.graph_info()
    assert (info.captures, info.replays, info.eager_steps, info.eager_fallbacks) == (1, 8, 0, 0)
    assert (later.captures, later.replays, later.eager_steps) == (1, 6, 2)
    assert info.captured[0].shape == (1, 3, 224, 224)


def test_each_recording_needs_its_own(certified: Path) -> None:
    small = torch.rand(1, 3, 192, 192, device=DEVICE)
    with load(certified, "auto") as model:
        model.add_recording(certified / "small")
        assert not model.graph_info().supported
        for i in range(4):
            model.predict(images(i))
            model.predict(small)
        info = model.graph_info()
    assert [graph.shape for graph in info.captured] == [(1, 3, 224, 224)]
    assert (info.replays, info.eager_steps) == (2, 6)
    with load(certified, True) as model, pytest.raises(samebits.UncertifiedError):
        model.add_recording(certified / "small")


@pytest.mark.parametrize("what", ["untrusted", "missing", "edited", "other recording"])
def test_refused(certified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    (file,) = (certified / "certificates").rglob("*.dsse.json")
    recording = certified / "resnet"
    if what == "untrusted":
        monkeypatch.setenv("SAMEBITS_KEYS", str(tmp_path))
    elif what == "missing":
        monkeypatch.setenv("SAMEBITS_CERTIFICATES", str(tmp_path))
    elif what == "edited":
        edited = tmp_path / file.name
        edited.write_text(file.read_text().replace('"payload":"e', '"payload":"f', 1))
        monkeypatch.setenv("SAMEBITS_CERTIFICATES", str(edited))
    else:
        recording = certified / "small"
    with pytest.raises(samebits.UncertifiedError):
        samebits.load(recording, device=DEVICE, cuda_graph=True)
    with samebits.load(recording, device=DEVICE, cuda_graph="auto") as model, pytest.raises(NotImplementedError):
        model.capture_graph()


def test_a_nearly_full_gpu(certified: Path) -> None:
    """A capture that has no room fails once, and steps go on eagerly with the same bits."""
    x = images(3)
    with load(certified, "auto") as model:
        out = {"output": model.predict(x)["output"].clone()}
        expected = out["output"].clone()
        torch.cuda.synchronize()
        hold, size = [], 1 << 30
        while size >= 1 << 20:
            try:
                hold.append(torch.empty(size, dtype=torch.uint8, device=DEVICE))
            except torch.cuda.OutOfMemoryError:
                size //= 2
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(5):
                model.predict(x, out=out)
        info = model.graph_info()
        torch.cuda.synchronize()
        same = torch.equal(out["output"].cpu(), expected.cpu())
        hold.clear()
        torch.cuda.empty_cache()  # others need it
    assert same
    failures = [w for w in said if issubclass(w.category, samebits.SamebitsWarning)]
    assert len(failures) == int(info.eager_fallbacks > 0)
    assert info.graph_count == 1 or "CAPTURE_FAILED" in info.fallback_reason or "OUT_OF_MEMORY" in info.fallback_reason
