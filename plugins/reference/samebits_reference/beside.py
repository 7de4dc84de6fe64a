"""What a step does beside its operations: generators it moves, memory it reads undefined, questions it asks.

A recording holds operations. What is found here is not among them, so a replay does not do it, or does it otherwise.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference.families import flatten
from samebits_reference.observe import Observer, source_line
from samebits_reference.reachable import Picture
from samebits_reference.watchers import tensors, undefined_results
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import Kind, Problem, ProblemError


class Generators:
    """Sees whether a step moves or seeds a generator. Each is moved before, so that a seed set again and again shows."""

    def __init__(self, device: torch.device) -> None:
        self.problems: list[Problem] = []
        self._kinds: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Callable[[], object]]] = {
            "torch's": (torch.get_rng_state, torch.set_rng_state, lambda: torch.rand(1)),
            "Python's random": (random.getstate, random.setstate, random.random),
            "numpy's": (np.random.get_state, np.random.set_state, np.random.random),
        }
        if device.type == "cuda":
            self._kinds["the device's"] = (
                lambda: torch.cuda.get_rng_state(device),
                lambda state: torch.cuda.set_rng_state(state, device),
                lambda: torch.rand(1, device=device),
            )

    def __enter__(self) -> Generators:
        """Remember how each generator is, and move it."""
        self._kept = {name: get() for name, (get, _, _) in self._kinds.items()}
        for _, _, draw in self._kinds.values():
            draw()
        self._before = {name: _text(get()) for name, (get, _, _) in self._kinds.items()}
        return self

    def __exit__(self, *_error: object) -> None:
        """Look which have moved, and put all back."""
        for name, (get, put, _) in self._kinds.items():
            if _text(get()) != self._before[name]:
                what = f"the step draws from or seeds {name} generator, which no replay does"
                self.problems.append(Problem("RNG_STATE_IN_REGION", what, "step"))
            put(self._kept[name])


def _text(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return bytes(state.tolist())
    return repr(state) if not isinstance(state, tuple) else [_text(part) for part in state]


@contextlib.contextmanager
def capture_is(answer: bool) -> Iterator[list[str]]:
    """Answer who asks whether the stream is captured. Gives where it was asked."""
    asked: list[str] = []
    plain = torch.cuda.is_current_stream_capturing

    def answered() -> bool:
        asked.append(source_line())
        return answer

    torch.cuda.is_current_stream_capturing = answered
    try:
        yield asked
    finally:
        torch.cuda.is_current_stream_capturing = plain


class _Fill(Observer):
    """Fills memory that operations leave undefined."""

    def __init__(self, floats: float, others: int) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._fill = (others, floats)
        self._undefined: frozenset[int] = frozenset()

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._undefined = undefined_results(func, args)

    def after(self, index: int, func: torch._ops.OpOverload, result: Any) -> None:
        with _disable_current_modes():
            for number, made in enumerate(tensors(result)):
                if number in self._undefined and made.numel():
                    made.fill_(self._fill[made.is_floating_point()])
                    self.lines.append(source_line())


def undefined_memory(step: Callable[[], Any]) -> list[Problem]:
    """Say whether a step's outputs depend on what lay in memory before."""

    def run(fill: _Fill) -> list[str]:
        with fill:
            made = list(flatten(step()))
        return [digest_tensor(tensor) for _, tensor in made]

    zeros, other = _Fill(0.0, 0), _Fill(float("nan"), 1)
    given = run(zeros)
    if run(other) == given or run(zeros) != given:  # what does not give its own bits again is for others to judge
        return []
    what = f"outputs depend on memory that was never written; it comes from {', '.join(dict.fromkeys(zeros.lines))}"
    return [Problem("UNINITIALISED_MEMORY", what, "step")]


class Traces:
    """Follows what steps that are recorded one after the other leave behind in Python.

    Once is no proof: a cache may fill late. But a step that has the operations of the one before, and again changes what
    Python holds, does what no replay will do. Where its operations differ the suite says so by the recordings.
    """

    def __init__(self) -> None:
        self._data = b""
        self._differ = False  # operations did, once
        self._constants: dict[str, str] = {}

    @property
    def began(self) -> bool:
        """Say whether a step was looked at."""
        return bool(self._data)

    def check(self, before: Picture, after: Picture, data: bytes, weights: dict[str, torch.Tensor]) -> None:
        """Look at one more recorded step."""
        constants = {name: digest_tensor(held) for name, held in weights.items() if name.startswith("constant.")}
        self._differ |= self.began and data != self._data
        again = self.began and not self._differ
        changed = after.since(before) if again else []
        moved = [name for name, digest in constants.items() if self._constants.get(name, digest) != digest]
        self._data, self._constants = data, constants
        problems = []
        if changed:
            replaced = [path for path in changed if path in after.registered]
            reason = "BUFFER_REPLACED_IN_REGION" if replaced else "PY_SIDE_EFFECT"
            problems.append(
                Problem(reason, f"every step changes {named(replaced or changed)}, and a replay does not", "step")
            )
        if again and moved:
            what = f"{named(moved)} holds other bits than in the step before: something made it that is no operation"
            problems.append(
                Problem("UNSEEN_WORK", what, "step", "another thread, a graph of its own, memory written by hand")
            )
        if problems:
            raise ProblemError(problems, Kind.UNIMPLEMENTED)


def check_capture(before: Picture, after: Picture) -> None:
    """Refuse a step that changes what Python holds while it is captured: it has run before, and will run no more."""
    changed = after.since(before)
    if not changed:
        return
    lazy = [path for path in changed if path in after.tensors]
    if lazy:
        what = f"{named(lazy)} was made while the step was captured, and lies in memory that replays write over"
        raise ProblemError(Problem("LAZY_BUFFER_IN_POOL", what, "prepare"), Kind.UNIMPLEMENTED)
    what = f"the step changes {named(changed)} while it is captured, and a replay does not"
    raise ProblemError(Problem("PY_SIDE_EFFECT", what, "prepare"), Kind.UNIMPLEMENTED)


def named(paths: Sequence[str]) -> str:
    """Give some of many paths."""
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
