"""What the tests share. They run against an installed samebits, not against the sources beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import samebits

os.environ.setdefault("SAMEBITS_THREADS", "2")  # a step of `slow` takes seconds on any machine
DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture
def tiny() -> Iterator[samebits.Model]:
    with samebits.load(DATA / "tiny") as model:
        yield model


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script in a fresh interpreter that finds the same samebits."""

    def run(script: str, *arguments: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DATA": str(DATA), **environment}
        command = [sys.executable, "-X", "faulthandler", "-c", script, *arguments]
        # Elsewhere than in the sources: Python looks for modules where it is started.
        return subprocess.run(command, cwd=DATA, env=env, text=True, capture_output=True, timeout=timeout, check=False)

    return run
