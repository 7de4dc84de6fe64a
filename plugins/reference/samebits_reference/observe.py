"""Watches one step below autograd: every call that reaches a kernel, in order, with the module and line it came from."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from samebits_reference.reach import gives_numbers

_SKIPPED = frozenset({"torch", "contextlib"})
WATCHERS = frozenset(
    f"samebits_reference.{name}"
    for name in ("beside", "graphs", "observe", "reach", "recorder", "running", "train_recorder", "unseen", "watchers")
)


class Observer(TorchDispatchMode):
    """Numbers the calls of a step. Subclasses look at each call before and after it runs.

    Recordings and traces number operations alike because both are made by this class. A call that gives the host a number
    and no tensor is not one of them: it is the host that reads there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at a call that has not run yet."""

    def after(self, index: int, func: torch._ops.OpOverload, result: Any) -> None:
        """Look at a call that has run."""

    def host_reads(self, what: str, tensor: torch.Tensor) -> None:
        """Look at a tensor whose data the host is about to read."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if gives_numbers(func):
            for tensor in args:
                if isinstance(tensor, torch.Tensor):
                    self.host_reads(operation_name(func), tensor)
            return func(*args, **kwargs)
        index = self.count
        self.count += 1
        self.before(index, func, args, kwargs)
        result = func(*args, **kwargs)
        self.after(index, func, result)
        return result


def operation_name(func: torch._ops.OpOverload) -> str:
    """Give the name as recordings have it: aten::add.Tensor, aten::silu."""
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


class ModulePath:
    """Knows which module of a tree is running."""

    def __init__(self, root: nn.Module) -> None:
        self._names = {id(module): name for name, module in reversed(list(root.named_modules()))}
        self._stack: list[str] = []

    @property
    def current(self) -> str:
        """Give the path of the innermost running module, empty outside of all."""
        return self._stack[-1] if self._stack else ""

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Follow every module call. Hooks are global, so that no module looks hooked to code that asks."""

        def enter(module: nn.Module, _args: Any) -> None:
            self._stack.append(self._names.get(id(module), self.current))

        def leave(_module: nn.Module, _args: Any, _output: Any) -> None:
            self._stack.pop()

        with contextlib.ExitStack() as stack:
            stack.callback(nn.modules.module.register_module_forward_pre_hook(enter).remove)
            stack.callback(nn.modules.module.register_module_forward_hook(leave, always_call=True).remove)
            yield
        self._stack.clear()


def source_line() -> str:
    """Give file:line of the innermost frame outside torch and of those who watch; the file is relative to its package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if package not in _SKIPPED and module not in WATCHERS:
            return line_of(frame)
        frame = frame.f_back
    return ""


def line_of(frame: FrameType) -> str:
    """Give file:line of a frame; the file is relative to its package."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    parts = Path(frame.f_code.co_filename).parts
    # From the last folder of the package's name on; a lone script is its own package.
    start = len(parts) - 1 - parts[::-1].index(package) if package in parts else len(parts) - 1
    return f"{Path(*parts[start:]).as_posix()}:{frame.f_lineno}"
