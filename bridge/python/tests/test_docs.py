"""The examples of the guide run as they stand."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if GUIDE.exists() else []


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


def test_there_are_examples() -> None:
    if not GUIDE.exists():
        pytest.skip("the guide is not here")
    assert len(EXAMPLES) >= 4
