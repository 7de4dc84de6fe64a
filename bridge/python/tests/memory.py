"""Measures how much memory this process holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def resident() -> int:
    """Give the memory that this process holds, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(step: Callable[[], object], repeats: int) -> int:
    """Give by how much memory grows over repeats, after as many to warm up."""
    for _ in range(repeats):
        step()
    before = resident()
    for _ in range(repeats):
        step()
    return resident() - before
