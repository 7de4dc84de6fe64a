"""A call of LibreYOLO's `predict` that stops wherever it wants a step, until somebody brings what the step gave.

LibreYOLO hands a step to a graph runner where a family has one: behind that seam lies all that it captures, and nothing
else. So a runner that waits takes the step out of `predict`, and whatever lies before and behind is LibreYOLO's own code,
in its own order. Each call has a thread, of which one runs at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch


class Stopped:
    """One call that runs up to its next step, or to its end."""

    def __init__(self, family: Any, own: dict[str, Any], call: Callable[[], Any]) -> None:
        """Take what family shall have as its attributes beside `_graph_runner` while the call runs."""
        self.wanted: torch.Tensor | None = None  # what the step shall be run on; None: the call has ended
        self.result: Any = None
        self._call = call
        self._family = family
        # Families keep things of the picture at hand in attributes: each call has its own.
        self._own = own | {"_graph_runner": self, "_cuda_graph_mode": "on"}
        self._foreign = set(self._own)
        self._error: BaseException | None = None
        self._given: Any = None
        self._abandoned = False
        self._go, self._stop = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, name="predict", daemon=True)

    def go_on(self, given: Any = None) -> None:
        """Run up to the next step, or to the end. Raises what the call raised."""
        attributes = vars(self._family)
        before = dict(attributes)
        attributes.update(self._own)
        self._given, self.wanted = given, None
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._go.release()
        self._stop.acquire()
        self._own = dict(attributes)
        attributes.clear()
        attributes.update(before)
        if self.wanted is not None:
            return
        self._thread.join()
        if self._error is not None:
            raise self._error
        # What a family keeps for later calls, it keeps.
        attributes.update((name, value) for name, value in self._own.items() if name not in self._foreign)

    def abandon(self) -> None:
        """End a call that waits for its step."""
        if self.wanted is not None:
            self._abandoned = True
            self._go.release()
            self._thread.join()
            self.wanted = None

    def run(self, images: torch.Tensor, auto: bool = False) -> Any:
        """Stand in for LibreYOLO's graph runner: in the call's own thread."""
        self.wanted = images
        self._stop.release()
        self._go.acquire()
        if self._abandoned:
            raise _AbandonedError
        return self._given

    def _main(self) -> None:
        try:
            self.result = self._call()
        except _AbandonedError:
            return
        except BaseException as error:  # it is raised again where the call was made
            self._error = error
        self._stop.release()


class _AbandonedError(BaseException):
    """Nobody will bring what the step gave. No family may catch it."""
