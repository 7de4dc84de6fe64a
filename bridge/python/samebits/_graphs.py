"""Captured graphs: the calls that models and trainers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._loading import Loaded


@dataclass(frozen=True)
class GraphInfo:
    """How steps run, and how many ran in which way.

    `mode` is ``on``, ``off`` or ``auto``, `nodes` the size of the captured graph, `failure` why mode ``auto`` gave up.
    """

    mode: str
    captured: bool
    nodes: int
    captures: int
    replays: int
    eager_steps: int
    failure: str


class Graphed(Loaded):
    """The calls about graphs."""

    def capture_graph(self) -> GraphInfo:
        """Capture a step now, whatever `cuda_graph` was. Further steps replay it; no state changes."""
        return _info(self._call("CaptureGraph"))

    def graph_info(self) -> GraphInfo:
        """Say whether a graph is captured, and count what ran."""
        return _info(self._call("GraphInfo"))

    def release_graphs(self) -> GraphInfo:
        """Drop the captured graph and its memory. ``cuda_graph=True`` captures again at the next step."""
        return _info(self._call("ReleaseGraphs"))


def _info(result: Mapping[str, Any]) -> GraphInfo:
    return GraphInfo(**result)
