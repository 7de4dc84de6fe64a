from __future__ import annotations

import concurrent.futures
import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from samebits_wire import arm_pb2 as wire
from samebits_wire.arm import Arm
from samebits_wire.loop import Loop
from samebits_wire.memory import CONTROL_BYTES, Memory
from samebits_wire.problems import Problem, ProblemError


class Recorder(Arm):
    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []
        self.threads: set[int] = set()

    def step(self, input_bank: int, output_bank: int) -> None:
        self.threads.add(threading.get_ident())
        if input_bank == 1:
            raise ProblemError(Problem("ODD", "an odd bank"))
        self.steps.append((input_bank, output_bank))


class Host:
    """The other side of the wire."""

    def __init__(self, descriptor: int, step: socket.socket) -> None:
        self.descriptor = descriptor
        self.socket = step

    def step(
        self, input_bank: int, output_bank: int, magic: int = 0x54424D53, command: int = 1
    ) -> list[wire.Problem] | None:
        head = struct.pack("<IIQIIIIII", magic, 1, 9, command, 0, input_bank, output_bank, 0xFFFFFFFF, 0)
        os.pwrite(self.descriptor, head, 0)
        self.socket.sendall(b"S")
        assert self.socket.recv(1) == b"D"
        status, length, start, end = struct.unpack("<IIQQ", os.pread(self.descriptor, 24, 32))
        assert 0 < start <= end
        if status == 0:
            return None
        assert status == 1
        return list(wire.Problems.FromString(os.pread(self.descriptor, length, 64)).problems)


@pytest.fixture
def sides() -> Iterator[tuple[Loop, Host]]:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, CONTROL_BYTES)
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    loop = Loop(descriptor, theirs, Memory(descriptor))
    loop.arm = Recorder()
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield loop, Host(descriptor, ours)
    loop.stop()
    thread.join(10)
    assert not thread.is_alive()
    ours.close()
    theirs.close()
    os.close(descriptor)


def test_steps(sides: tuple[Loop, Host]) -> None:
    loop, host = sides
    loop.inputs, loop.outputs = 3, 2
    assert host.step(0, 1) is None
    assert host.step(2, 0) is None
    refused = host.step(1, 0)
    assert refused is not None
    assert [p.reason for p in refused] == ["ODD"]
    assert loop.arm.steps == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("banks", "change", "reason"),
    [
        pytest.param((0, 0), {}, "WRONG_ORDER", id="before Prepare"),
        pytest.param((2, 2), {}, "BANK", id="no such bank"),
        pytest.param((9, 9), {"magic": 1}, "WIRE", id="foreign block"),
        pytest.param((9, 9), {"command": 2}, "WIRE", id="unknown command"),
    ],
)
def test_bad_steps_are_refused(
    sides: tuple[Loop, Host], banks: tuple[int, int], change: dict[str, int], reason: str
) -> None:
    loop, host = sides
    loop.inputs, loop.outputs = banks
    refused = host.step(2, 0, **change)
    assert refused is not None
    assert refused[0].reason == reason


def test_calls_and_steps_share_one_thread(sides: tuple[Loop, Host]) -> None:
    loop, host = sides
    loop.inputs = loop.outputs = 1
    idents = {loop.do(threading.get_ident).result(10) for _ in range(5)}
    host.step(0, 0)
    assert idents == loop.arm.threads
    assert len(idents) == 1


def test_errors_of_calls_reach_the_caller(sides: tuple[Loop, Host]) -> None:
    loop, _ = sides
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        loop.do(lambda: 1 // 0).result(10)
    assert loop.do(lambda: 7).result(10) == 7


def test_a_cancelled_call_does_not_begin(sides: tuple[Loop, Host]) -> None:
    loop, _ = sides
    gate = threading.Event()
    begun: list[int] = []
    first = loop.do(lambda: gate.wait(10))
    second = loop.do(lambda: begun.append(1))
    assert second.cancel()
    gate.set()
    assert first.result(10)
    with pytest.raises(concurrent.futures.CancelledError):
        second.result(10)
    assert loop.do(lambda: len(begun)).result(10) == 0
