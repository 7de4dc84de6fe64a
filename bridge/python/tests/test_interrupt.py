from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits

SIZE = (4096, 4096)


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Hear SIGINT: a shell starts what runs in the background deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted(after: float) -> Iterator[None]:
    """Send this process what Ctrl-C sends, and expect the interrupt long before the step would end."""
    timer = threading.Timer(after, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - begin < after + 1
    timer.join()


@pytest.fixture
def slow(data: Path) -> Iterator[samebits.Model]:
    with samebits.load(data / "slow") as model:
        yield model


def test_ctrl_c_during_a_step(slow: samebits.Model) -> None:
    x = np.ones(SIZE, np.float32)
    mine = np.full(SIZE, 7, np.float32)
    with interrupted(0.3):
        slow.predict(x, out={"y": mine})
    # What was given up ends in the background and leaves the caller's array alone; the next step waits for it.
    after = slow.predict(x * 2)["y"]
    assert (after[0, 0], after[-1, -1]) == (4, 4)
    assert (mine == 7).all()


def test_ctrl_c_while_waiting_for_another_thread(slow: samebits.Model) -> None:
    x = np.ones(SIZE, np.float32)
    thread = threading.Thread(target=slow.predict, args=(x,))
    thread.start()
    time.sleep(0.2)
    with interrupted(0.2):
        slow.predict(x)
    thread.join()


def test_ctrl_c_while_closing(data: Path) -> None:
    model = samebits.load(data / "slow")
    thread = threading.Thread(target=model.predict, args=(np.ones(SIZE, np.float32),))
    thread.start()
    time.sleep(0.2)
    with interrupted(0.2):
        model.close()
    assert model.closed
    thread.join()


def test_signal_handlers_may_raise_anything(slow: samebits.Model) -> None:
    class LateError(Exception):
        pass

    def handler(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(LateError):
            slow.predict(np.ones(SIZE, np.float32))
    finally:
        signal.signal(signal.SIGALRM, before)


COMPILING = """
import os, signal, threading, time, samebits
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
begin = time.monotonic()
try:
    samebits.load(os.environ["DATA"] + "/tiny")
    print("loaded")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 2)
"""


def test_ctrl_c_while_kernels_are_compiled(python: Callable[..., Any], tmp_path: Path) -> None:
    compiler = tmp_path / "slow-compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && exec g++ --version\nexec sleep 5\n')
    compiler.chmod(0o755)
    done = python(COMPILING, CXX=str(compiler), SAMEBITS_CACHE=str(tmp_path / "cache"))
    assert done.stdout.split() == ["interrupted", "True"], done
    assert done.returncode == 0, done.stderr
