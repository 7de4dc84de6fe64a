"""Which Python code a step runs: the variables beside the family's own that it uses, and what it asks of the world outside.

A step may count in a global variable as well as in an attribute. And it may look at the clock, or at a file:
what it learns there is decided once, when it is captured.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import types
import weakref
from collections.abc import Container, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from samebits_reference.families import Built
from samebits_reference.observe import WATCHERS, line_of
from samebits_reference.reachable import OPAQUE, PLAIN, Picture, package
from samebits_wire.problems import Kind, Problem, ProblemError

# Who tells the time of a line in a log, or warns once, tells nothing to the step.
_TELLERS = frozenset({"logging", "warnings", "linecache", "traceback", "importlib", "_frozen_importlib"})
_DEEPEST = 3  # torch.backends.cudnn
_STANDARD = frozenset(sys.stdlib_module_names)

# Functions in C, by their names: what has one of these and is of one of the modules or types below tells something.
_CLOCKS = frozenset({"time", "time_ns", "monotonic", "monotonic_ns", "localtime", "gmtime", "strftime", "ctime", "asctime"})
_CLOCKS_OF_TYPES = frozenset({"datetime.now", "datetime.utcnow", "date.today"})
_FILES = frozenset({"open", "open_code", "stat", "lstat", "access", "listdir", "scandir", "read", "readlink", "urandom"})
_SOCKETS = frozenset({"recv", "recv_into", "recvfrom", "accept", "connect"})
_TELLING = _CLOCKS | {"now", "utcnow", "today"} | _FILES | _SOCKETS


class Running:
    """Sees what steps run, one after the other."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}  # what the last step asked of the world outside, and where first
        self._known: set[CodeType] = set()
        self._codes: dict[CodeType, dict[str, Any]] = {}  # with the global variables that each may use
        # Functions of those that use an outer function's variables. Who made them decides how long they live.
        self._functions: dict[CodeType, list[weakref.ref[types.FunctionType]]] = {}

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Look at a step of this thread."""
        self.asked.clear()
        before = sys.getprofile()
        sys.setprofile(self._saw)
        try:
            yield
        finally:
            sys.setprofile(before)
        self._find_functions()

    def check(self) -> None:
        """Refuse a step that looked outside."""
        if self.asked:
            what = f"the step asks {' and '.join(self.asked)}, and a replay does not ask again"
            problem = Problem("OUTSIDE_WORLD", what, "step", ", ".join(dict.fromkeys(self.asked.values())))
            raise ProblemError(problem, Kind.UNIMPLEMENTED)

    def variables(self, known: Container[str] | None = None) -> dict[str, Any]:
        """Give the global variables that the code names, and functions with variables of outer ones: all, or those known."""
        found: dict[str, Any] = {"environment": dict(os.environ)}
        for code, names in self._codes.items():
            found |= _named(code, names, str(names.get("__name__", "")), depth=0)
        for code, functions in self._functions.items():
            found |= {
                f"{code.co_name}#{number}": made for number, each in enumerate(functions) if (made := each()) is not None
            }
        return found if known is None else {name: held for name, held in found.items() if name in known}

    def picture(self, built: Built, before: Picture | None = None) -> Picture:
        """Look at what Python holds of a family, too. What was not looked at before, if there was a before, is left out."""
        variables = self.variables(None if before is None else before.roots)
        return Picture(module=built.module, family=built.family, **variables)

    def _saw(self, frame: FrameType, event: str, given: Any) -> None:
        if event == "call":
            if frame.f_code not in self._known:
                self._known.add(frame.f_code)
                if _is_own(frame.f_globals):
                    self._codes[frame.f_code] = frame.f_globals
        elif event == "c_call" and given.__name__ in _TELLING:
            what = _asked(given)
            if what:
                self._asks(frame, what)

    def _asks(self, frame: FrameType | None, what: str) -> None:
        """Note what the family asks, be it by way of the standard library."""
        while frame is not None and not _is_own(frame.f_globals):
            name = str(frame.f_globals.get("__name__", ""))
            if name in WATCHERS or package(name) in _TELLERS or package(name) not in _STANDARD:
                return  # it is they who ask
            frame = frame.f_back
        if frame is not None:
            self.asked.setdefault(what, line_of(frame))

    def _find_functions(self) -> None:
        codes = [code for code in self._codes if code.co_freevars and code not in self._functions]
        for code in codes:
            self._functions[code] = []
        for function in gc.get_referrers(*codes) if codes else ():
            if isinstance(function, types.FunctionType) and function.__code__ in self._functions:
                self._functions[function.__code__].append(weakref.ref(function))


def _is_own(names: dict[str, Any]) -> bool:
    """Say whether code with these global variables is a family's: not PyTorch's, nor of those who watch."""
    name = str(names.get("__name__", ""))
    return name not in WATCHERS and package(name) not in OPAQUE and package(name) not in _STANDARD


def _named(code: CodeType, names: Mapping[str, Any], module: str, depth: int) -> dict[str, Any]:
    """Give what code may use of a module's variables, and of the modules among them, by its names alone."""
    found: dict[str, Any] = {}
    strange = package(module) in OPAQUE or package(module) in _STANDARD
    for name in code.co_names:
        held = names.get(name)
        if isinstance(held, types.ModuleType):
            if depth < _DEEPEST:
                of_kind = {
                    own: getattr(held, own) for own in code.co_names if own in vars(type(held))
                }  # as PyTorch's settings
                found |= _named(code, vars(held) | of_kind, held.__name__, depth + 1)
        elif name in names and not isinstance(held, types.BuiltinFunctionType) and (not strange or isinstance(held, PLAIN)):
            found[f"{module}.{name}"] = held
    return found


def _asked(function: Any) -> str:
    """Say what a function in C with a telling name tells of the world outside; empty if nothing."""
    module = function.__module__
    if module == "time" or (module is None and function.__qualname__ in _CLOCKS_OF_TYPES):
        return "the clock"
    if module in ("_io", "posix"):
        return "the system for a file"
    if module is None and function.__qualname__.partition(".")[0] in ("socket", "SSLSocket"):
        return "a socket"
    return ""
