"""Runs everything that an arm does on one thread: calls, which come by a queue, and steps, which come by a byte."""

from __future__ import annotations

import collections
import concurrent.futures
import mmap
import os
import pathlib
import select
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from samebits_wire.arm import Arm
from samebits_wire.memory import CONTROL_BYTES, Memory
from samebits_wire.problems import Kind, Problem, ProblemError, encode

Result = TypeVar("Result")

# The control block, in front of the shared memory. See docs/wire.md.
_MAGIC = 0x54424D53  # SMBT
_LAYOUT = 1
_STEP = 1
_HEAD = struct.Struct("<II8xI4xII")  # magic, layout, command, input bank, output bank
_STATUS = struct.Struct("<II")
_TIMES = struct.Struct("<QQ")
_AT_STATUS, _AT_TIMES, _AT_TEXT = 32, 40, 64


class Loop:
    """Waits for calls and steps in one poll, so that a step costs no switch of threads."""

    def __init__(self, descriptor: int, step: socket.socket, memory: Memory) -> None:
        self.arm: Arm = Arm()
        self.memory = memory
        self.inputs = 0  # banks of the last good Prepare
        self.outputs = 0
        self._control = mmap.mmap(descriptor, CONTROL_BYTES)
        self._step = step
        self._wake_read, self._wake_write = os.pipe()
        self._queue: collections.deque[Callable[[], None]] = collections.deque()
        self._stopping = False

    def do(self, work: Callable[[], Result]) -> concurrent.futures.Future[Result]:
        """Have the arm's thread do some work. A future that is cancelled before its turn is left out."""
        future: concurrent.futures.Future[Result] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # whatever it is, the caller must hear of it
                future.set_exception(explain(error))
            else:
                future.set_result(result)

        self._queue.append(run)
        os.write(self._wake_write, b"c")
        return future

    def stop(self) -> None:
        """Let `run` return once the work at hand is done."""
        self._stopping = True
        os.write(self._wake_write, b"s")

    def run(self) -> None:
        """Serve until `stop`, or until the host closes its end."""
        poll = select.poll()
        poll.register(self._step, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while not self._stopping:
            for descriptor, _ in poll.poll():
                if descriptor != self._wake_read:
                    self._one_step()
                    continue
                os.read(self._wake_read, 4096)
                while self._queue:
                    self._queue.popleft()()

    def _one_step(self) -> None:
        byte = self._step.recv(1)
        if byte != b"S":
            os.write(2, b"the host closed the step socket\n" if not byte else b"the host sent no step\n")
            os._exit(1)
        text = b""
        started = time.monotonic_ns()
        try:
            self._run_step()
        except BaseException as error:  # the plugin goes on serving
            text = encode(explain(error).problems, CONTROL_BYTES - _AT_TEXT)
        _TIMES.pack_into(self._control, _AT_TIMES, started, time.monotonic_ns())
        self._control[_AT_TEXT : _AT_TEXT + len(text)] = text
        _STATUS.pack_into(self._control, _AT_STATUS, 1 if text else 0, len(text))
        try:
            self._step.send(b"D")
        except OSError:
            os._exit(1)

    def _run_step(self) -> None:
        magic, layout, command, input_bank, output_bank = _HEAD.unpack_from(self._control)
        if (magic, layout, command) != (_MAGIC, _LAYOUT, _STEP):
            seen = f"control block has magic {magic:#x}, layout {layout}, command {command}"
            raise ProblemError(Problem("WIRE", f"{seen}; this plugin knows {_MAGIC:#x}, {_LAYOUT}, {_STEP}"))
        if not self.outputs:
            raise ProblemError(Problem("WRONG_ORDER", "a step before a good Prepare"), Kind.WRONG_ORDER)
        self.check_bank(input_bank, self.inputs, "input")
        self.check_bank(output_bank, self.outputs, "output")
        self.arm.step(input_bank, output_bank)

    def check_bank(self, bank: int, have: int, kind: str) -> None:
        """Refuse a bank that Prepare did not give."""
        if bank >= have:
            raise ProblemError(Problem("BANK", f"{kind} bank {bank}: Prepare gave {have}"))


def explain(error: BaseException) -> ProblemError:
    """Turn whatever an arm raised into problems; the traceback of what it did not mean to raise goes to the log."""
    if isinstance(error, ProblemError) and error.problems:
        return error
    if isinstance(error, NotImplementedError):
        return ProblemError(Problem("UNIMPLEMENTED", str(error) or "not implemented"), Kind.UNIMPLEMENTED)
    sys.stderr.write("".join(traceback.format_exception(error)))
    sys.stderr.flush()
    frames = traceback.extract_tb(error.__traceback__)
    where = f"at {pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}; " if frames else ""
    detail = f"{where}its traceback is in the plugin's log; the plugin goes on serving"
    summary = f"{type(error).__name__}: {error}"
    # torch's class is found by its name: this package does not import torch.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return ProblemError(Problem("OUT_OF_MEMORY", summary, detail=detail), Kind.OUT_OF_MEMORY)
    return ProblemError(Problem("PLUGIN_EXCEPTION", summary, detail=detail), Kind.INTERNAL)
