"""Calls into the extension: started at the first one, refused after a fork, interrupted by signals."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import warnings
from typing import Any, NoReturn

from ._errors import ForkedError, SamebitsWarning, translated

# What the engine looks up in the environment.
_SETTINGS = (
    "CXX",
    "HOME",
    "NVIDIA_TF32_OVERRIDE",
    "SAMEBITS_CACHE",
    "SAMEBITS_CERTIFICATES",
    "SAMEBITS_KEYS",
    "SAMEBITS_PLAN_CACHE",
    "SAMEBITS_THREADS",
    "SAMEBITS_TORCH_LIB",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
_tickets = itertools.count(1)
_lock = threading.Lock()
_extension: Any = None
_settled: dict[str, str | None] = {}
_process = 0  # the process that loaded the extension


def extension() -> Any:
    """Give the extension, loaded at the first call: it starts threads, and they do not survive a fork."""
    global _extension, _process
    if _extension is None:
        with _lock:
            if _extension is None:
                from ._native import _samebits

                _process = os.getpid()
                _extension = _samebits
    if _process != os.getpid():
        raise ForkedError(
            "this process was forked after Samebits had been used, and the engine's threads are not here: use Samebits in"
            " the child alone, or start it by multiprocessing's 'spawn'"
        )
    return _extension


def forked() -> bool:
    """Say whether calls are refused in this process."""
    return _extension is not None and _process != os.getpid()


def call(name: str, *arguments: int | str) -> Any:
    """Call a function that is over at once."""
    function = getattr(extension(), f"samebits_{name}")
    try:
        return function(*arguments)
    except RuntimeError as error:
        raised = translated(str(error))
    raise raised


def settle() -> None:
    """Let the engine see the environment as it is now: it has a copy from when it was loaded."""
    global _settled
    now = {name: os.environ.get(name) for name in _SETTINGS}
    if now != _settled:
        call("Settings", json.dumps(now))
        _settled = now


def run(name: str, *arguments: int | str) -> dict[str, Any]:
    """Call a function that may take long, and look at signals while it does.

    On Ctrl-C the call is given up: what it was doing ends in the background, without touching the caller's arrays.
    """
    extension()
    ticket = next(_tickets)
    try:
        text = call(name, ticket, *arguments)
        while not text:
            text = call("Await", ticket)
    except BaseException:  # whatever a signal handler raises; a call that failed by itself is known no more
        call("Abandon", ticket)
        raise
    result: dict[str, Any] = json.loads(text)
    if result.get("warning"):
        warnings.warn(result["warning"], SamebitsWarning, stacklevel=4)
    return result


class Handle:
    """What the engine holds for a model or a trainer. It is closed once: by close, or later by the garbage collector."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.loaded = False
        self.closed = False
        self.number: int = call("Reserve", what)
        self.process = os.getpid()

    def close(self) -> None:
        """Wait for the call that runs, then free everything. A second call does nothing."""
        if not self.closed:
            self.closed = True
            if not forked():
                run("Close", self.number)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: the number means nothing, or something else, in another process."""
        raise TypeError(f"a {self.what} of Samebits cannot be pickled or deep-copied: load one more, or one in each process")

    def __del__(self) -> None:
        if getattr(self, "process", None) != os.getpid() or self.closed or sys.is_finalizing():
            return
        self.closed = True
        if self.loaded:
            warnings.warn(f"unclosed Samebits {self.what}", ResourceWarning, source=self, stacklevel=2)
        call("Discard", self.number)


class View:
    """Memory of a model that arrays lie in. The model's memory stays until the last of them is gone."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process = os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid() and not sys.is_finalizing():
            call("Release", self.number)
