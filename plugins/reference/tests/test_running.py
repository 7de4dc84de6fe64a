"""What a step uses beside the family's own, and what it asks of the world outside."""

from __future__ import annotations

import datetime
import gc
import glob
import io
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from samebits_reference.reachable import Picture
from samebits_reference.running import Running
from samebits_wire.problems import ProblemError

_count = 0
_LIST = [0]


def in_a_global() -> None:
    global _count
    _count += 1


def in_a_list() -> None:
    _LIST[0] += 1


def of_a_function() -> None:
    of_a_function.calls = getattr(of_a_function, "calls", 0) + 1  # type: ignore[attr-defined]


def in_a_setting() -> None:
    torch.backends.cudnn.benchmark_limit = (torch.backends.cudnn.benchmark_limit or 0) + 1


def in_the_environment() -> None:
    os.environ["COUNT"] = os.environ.get("COUNT", "") + "1"


class Counts:
    calls = 0

    def step(self) -> None:
        Counts.calls += 1


def enclosed() -> Callable[[], None]:
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1

    return step


WAYS = {
    f"{__name__}._count": in_a_global,
    f"{__name__}._LIST[0]": in_a_list,
    f"{__name__}.of_a_function.calls": of_a_function,
    f"{__name__}.Counts.calls": Counts().step,
    "step#0.calls": enclosed(),
    "torch.backends.cudnn.benchmark_limit": in_a_setting,
    "environment['COUNT']": in_the_environment,
}


@pytest.mark.parametrize("path", WAYS)
def test_variables_beside_the_familys_own(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark_limit", 10)
    monkeypatch.setenv("COUNT", "1")
    step, running = WAYS[path], Running()
    step()
    with running.watch():
        step()
    before = Picture(**running.variables())
    assert Picture(**running.variables(before.roots)).since(before) == []
    with running.watch():
        step()
    assert Picture(**running.variables(before.roots)).since(before) == [path]
    running.check()


def test_settings_alone_are_looked_at_of_others() -> None:
    def step() -> None:
        torch.nn.functional.silu(torch.zeros(1))
        assert torch.backends.cudnn.deterministic is not None
        assert logging.getLogger().manager.disable is not None

    running = Running()
    with running.watch():
        step()
    names = {name for name in running.variables() if name.startswith(("torch", "logging"))}
    assert names == {"torch.backends.cudnn.deterministic"}


def test_functions_are_not_kept() -> None:
    step, running = enclosed(), Running()
    with running.watch():
        step()
    before = Picture(**running.variables())
    assert "step#0" in before.roots
    del step, before
    gc.collect()
    assert "step#0" not in running.variables()


def from_a_socket() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.send(b"7")
        one.recv(1)


ASKS: dict[str, Callable[[], Any]] = {
    "time": time.time,
    "monotonic": time.monotonic,
    "now": datetime.datetime.now,
    "exists": lambda: Path("/nonexistent").exists(),
    "open": lambda: Path("/dev/null").read_text(),
    "os.open": lambda: os.close(os.open("/dev/null", os.O_RDONLY)),
    "list": lambda: list(Path("/dev").iterdir()),
    "socket": from_a_socket,
    "by way of the standard library": lambda: os.path.exists("/nonexistent"),  # noqa: PTH110
    "by way of more of it": lambda: glob.glob("/nonexistent/*"),  # noqa: PTH207
}


@pytest.mark.parametrize("way", ASKS)
def test_a_step_that_looks_outside(way: str) -> None:
    running = Running()
    with running.watch():
        (lambda: ASKS[way]())()
    with pytest.raises(ProblemError, match="OUTSIDE_WORLD") as refusal:
        running.check()
    assert "test_running.py" in refusal.value.problems[0].detail
    with running.watch():
        pass
    running.check()  # the last step alone counts


def test_what_is_no_look_outside() -> None:
    running = Running()
    with running.watch():
        logging.getLogger("of nobody").warning("with the time of the line")
        time.perf_counter()
        os.environ.get("HOME")
        io.BytesIO(b"in memory").read()
        import json  # noqa: F401
    running.check()
