"""Operations of a step that its recorder does not see: those of other threads, and those that are kept from it.

A dispatch mode sees one thread, may be switched off there, and is while PyTorch makes a tensor of Python numbers.
PyTorch's observer of executions sits elsewhere, sees all threads, and knows in which call of the mode an operation ran.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_SEEN = "PythonDispatchMode"  # what PyTorch calls a call of a mode
_THREAD = "[pytorch|profiler|execution_trace|thread]"
_MADE_OF_OTHERS = "CompositeImplicitAutograd"
_MAIN = 1  # the number of the thread that began to observe
# What makes a tensor of Python's numbers. Their results are constants of the step, which are looked at as such.
_MAKES = frozenset(
    f"aten::{name}"
    for name in (
        *("empty", "empty_strided", "_to_copy", "copy_", "fill_", "zero_", "lift_fresh"),
        *("view", "as_strided", "alias", "detach", "detach_", "set_", "resize_"),
    )
)


@contextlib.contextmanager
def _short_lived() -> Iterator[Path]:
    """Give the path of a file that is gone afterwards: of memory, as a file in a folder stays if the process is killed."""
    memory = _memory()
    if memory is None:
        with tempfile.TemporaryDirectory(prefix="samebits-") as folder:
            yield Path(folder) / "trace.json"
        return
    try:
        yield Path(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)


def _memory() -> int | None:
    """Open memory that can be written and read by the path of its descriptor. None: a sandbox has no such path."""
    try:
        memory = os.memfd_create("trace.json")
    except OSError:
        return None
    path = Path(f"/proc/self/fd/{memory}")
    try:
        path.write_text("written")
        if path.read_text() == "written":
            return memory
    except OSError:
        pass
    os.close(memory)
    return None


class Unseen:
    """Observes a step that a dispatch mode records."""

    def __init__(self) -> None:
        self.operations: dict[str, bool] = {}  # by name: whether it ran in another thread

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Observe a step."""
        with _short_lived() as path:
            observer = torch.profiler.ExecutionTraceObserver()
            observer.register_callback(str(path))
            observer.start()
            try:
                yield
            finally:
                observer.stop()
                observer.unregister_callback()
            self._read(json.loads(path.read_text())["nodes"])

    def _read(self, nodes: list[dict[str, Any]]) -> None:
        by_id = {node["id"]: node for node in nodes}
        inside: set[int] = set()  # operations that lead to a call of the mode
        for node in nodes:
            if node["name"] == _SEEN:
                inside |= {above["id"] for above in _above(node, by_id)}
        for node in nodes:
            name = node["name"]
            if node["id"] in inside or not _runs(name) or any(above["name"] == _SEEN for above in _above(node, by_id)):
                continue
            elsewhere = any(above["name"] == _THREAD and _thread(above) != _MAIN for above in _above(node, by_id))
            if elsewhere or name not in _MAKES:
                self.operations[name] = self.operations.get(name, False) or elsewhere


def _above(node: dict[str, Any], by_id: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    while (parent := by_id.get(node["ctrl_deps"])) is not None and parent is not node:
        yield parent
        node = parent


def _thread(node: dict[str, Any]) -> int:
    return next(int(each["value"]) for each in node["attrs"] if each["name"] == "tid")


@functools.cache
def _runs(name: str) -> bool:
    """Say whether it is the name of an operation that has kernels: not made of others, which would be seen in its place."""
    composite = [
        torch._C._dispatch_has_kernel_for_dispatch_key(each, _MADE_OF_OTHERS) for each in _overloads().get(name, ())
    ]
    return not all(composite)


@functools.cache
def _overloads() -> dict[str, list[str]]:
    overloads: dict[str, list[str]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        overloads.setdefault(name.partition(".")[0], []).append(name)
    return overloads
