"""Forks plugins from one process that has imported what all of them need. See docs/wire.md."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pathlib
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

_SOCKET = "SAMEBITS_FD_FORK"
_LONGEST = 64 << 10
_MOST_FILES = 16
_SET_DEATH_SIGNAL = 1  # of prctl


def fork_plugins(prepare: Callable[[], None], plugin: Callable[[], None]) -> NoReturn:
    """Call `prepare` once, then fork a process that calls `plugin` whenever the host asks for one.

    `prepare` imports, and starts no threads: a fork would lose them, and what they hold.
    """
    control = _take_socket()
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    problem = ""
    try:
        prepare()
        threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
        if threads > 1:
            problem = f"what it imported started {threads - 1} threads"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    _say(control, {"problem": problem})
    if problem:
        sys.exit(problem)
    gc.collect()
    gc.freeze()  # collections in plugins need not copy these pages
    while True:
        message, files, _, _ = socket.recv_fds(control, _LONGEST, _MOST_FILES, socket.MSG_CMSG_CLOEXEC)
        if not message:
            os._exit(0)  # the host is done, or gone
        order = json.loads(message)
        reply: dict[str, object]
        try:
            reply = {"pid": _fork(control, order, files, plugin)}
        except OSError as error:
            reply = {"problem": str(error)}
        for descriptor in files:
            os.close(descriptor)
        _say(control, reply)


def _say(control: socket.socket, message: dict[str, object]) -> None:
    """Send a message to the host, or end if it waits no more."""
    try:
        control.send(json.dumps(message).encode())
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)


def _take_socket() -> socket.socket:
    text = os.environ.pop(_SOCKET, "")
    try:
        return socket.socket(fileno=int(text))
    except (ValueError, OSError):
        sys.exit(f"{_SOCKET} is {text!r}: a Samebits host starts this, it does nothing by hand")


def _fork(control: socket.socket, order: dict[str, object], files: list[int], plugin: Callable[[], None]) -> int:
    """Fork twice, so that the plugin is an orphan, and the host's."""
    read, write = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        raise
    if between:
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            number = pipe.read()
        os.waitpid(between, 0)
        if not number:
            raise OSError("the fork ended before it was there")
        return int(number)
    try:
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.write(write, str(os.getpid()).encode())
            os.close(write)
            os.close(read)
            control.close()
            _become(order, files)
            plugin()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # the process between, and a plugin that came to its end


def _become(order: dict[str, object], files: list[int]) -> None:
    """Take on the life of a plugin that was started from its file."""
    host, names, environment = order["host"], order["files"], order["env"]
    assert isinstance(host, int)
    assert isinstance(names, list)
    assert isinstance(environment, list)
    while os.getppid() != host:  # until the process between has ended
        if os.getppid() == 1 or not pathlib.Path(f"/proc/{host}").exists():
            os._exit(1)
        time.sleep(0.0005)
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != host:
        os._exit(1)
    stdout, stderr, *named = files
    for descriptor, number in ((stdout, 1), (stderr, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(pair.split("=", 1) for pair in environment)
    os.environ.update(zip(names, map(str, named), strict=True))
