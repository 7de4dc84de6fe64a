"""The examples of the guide run as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "python.md"


def examples(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL) if document.exists() else []


EXAMPLES = examples(GUIDE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples(number: int, python: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    example = EXAMPLES[number]
    if "torch" in example:
        torch = pytest.importorskip("torch")
        if "cuda:0" in example and not torch.cuda.is_available():
            pytest.skip("needs a GPU")
    shutil.copytree(data / "tiny", tmp_path / "resnet18")
    shutil.copytree(data / "train", tmp_path / "resnet18-train")
    done = python(f"import os; os.chdir({str(tmp_path)!r})\n{example}")
    assert done.returncode == 0, f"{example}\n{done.stderr}"


def test_the_readme(python: Callable[..., Any], tmp_path: Path) -> None:
    """What README says runs as it stands: two recordings are made, resnet-18 is trained on photographs, and predicts."""
    pytest.importorskip("torch")
    readme, parity = ROOT / "README.md", ROOT / "bin" / "parity"
    if not parity.exists():
        pytest.skip("bin/parity is not built")
    (tmp_path / "goldens").symlink_to(ROOT / "goldens")
    commands = re.findall(r"^    bin/(parity record .*)$", readme.read_text(), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        subprocess.run([str(parity), *command.split()[1:]], cwd=tmp_path, check=True)
    (example,) = examples(readme)
    done = python(f"import os; os.chdir({str(tmp_path)!r})\n{example}")
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss (.*)$", done.stdout, re.MULTILINE)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 2
    said = re.search(r"than the coffee does: (\S+) against (\S+)$", done.stdout, re.MULTILINE)
    assert said
    assert float(said[1]) > float(said[2])


def test_there_are_examples() -> None:
    if not GUIDE.exists():
        pytest.skip("the guide is not here")
    assert len(EXAMPLES) >= 4
