"""Measures how much memory this process holds."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path


def resident() -> int:
    """Give the memory that this process holds, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(step: Callable[[], object], repeats: int, rounds: int = 10) -> int:
    """Give by how much memory grows over repeats: the least of some rounds, for a leak is in each, and noise is not.

    Go's heap grows for some rounds until it is collected for the first time.
    """
    held = []
    for _ in range(rounds + 1):
        for _ in range(repeats):
            step()
        held.append(resident())
    return min(after - before for before, after in itertools.pairwise(held))
