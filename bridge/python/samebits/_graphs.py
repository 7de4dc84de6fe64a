"""Captured graphs: the calls that models and trainers have in common."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import Problem
from ._loading import Loaded


@dataclass(frozen=True)
class CapturedGraph:
    """One graph: the shape and the type of the first input that it was captured for, and how often it was replayed."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    replays: int
    nodes: int


@dataclass(frozen=True)
class GraphInfo:
    """How steps run, and how many ran in which way since the model was loaded.

    Attributes:
        family: whose steps they are.
        supported: SUPPORTS_CUDA_GRAPH here: a certificate of the cell verifies, and is for this environment.
        unsupported: why not; empty if it is supported.
        certificate: the file that says so, or that comes nearest.
        captured: the graphs that there are.
        graph_count, max_graphs: how many, and how many there may be.
        eager_fallbacks: steps that ran eagerly though the mode asked for a graph; `fallback_reason` says why the latest did.
        mode: ``on``, ``off`` or ``auto``.
        nodes: of all graphs.
        captures, replays, eager_steps: what was done.
        invalidations: graphs that were dropped because memory that they held addresses of had moved.

    """

    family: str
    supported: bool
    unsupported: tuple[Problem, ...]
    certificate: str
    captured: tuple[CapturedGraph, ...]
    graph_count: int
    max_graphs: int
    eager_fallbacks: int
    fallback_reason: str
    mode: str
    nodes: int
    captures: int
    replays: int
    eager_steps: int
    invalidations: int


class Graphed(Loaded):
    """The calls about graphs."""

    def capture_graph(self, imgsz: int | None = None, batch: int | None = None, dtype: Any = None) -> GraphInfo:
        """Capture now, whatever `cuda_graph` was. Further steps of that shape replay the graph; no state changes.

        Args:
            imgsz: of the recordings to capture; any by default.
            batch: likewise.
            dtype: of their first input: ``"float32"``, ``torch.float32``, ``numpy.float32``.

        Raises:
            UncertifiedError: no certificate lets the cell be replayed here. On ``host`` none is needed: what is captured
                there is no CUDA graph.
            InputError: no recording is like that, or there are `max_graphs` graphs.
            DeviceError: the capture failed. None is tried again before `release_graphs`.

        """
        name = getattr(dtype, "__name__", None) or str(dtype)
        wanted = {
            "imgsz": 0 if imgsz is None else operator.index(imgsz),
            "batch": 0 if batch is None else operator.index(batch),
            "dtype": "" if dtype is None else name.removeprefix("torch."),
        }
        return _info(self._call("CaptureGraph", json.dumps(wanted)))

    def graph_info(self) -> GraphInfo:
        """Say which graphs there are, and count what ran."""
        return _info(self._call("GraphInfo"))

    def release_graphs(self) -> GraphInfo:
        """Drop all graphs and their memory. A capture that failed is forgotten, and ``"auto"`` counts steps anew."""
        return _info(self._call("ReleaseGraphs"))


def _info(result: Mapping[str, Any]) -> GraphInfo:
    fields = {name: value for name, value in result.items() if name != "warning"}
    fields["captured"] = tuple(CapturedGraph(**{**graph, "shape": tuple(graph["shape"])}) for graph in result["captured"])
    fields["unsupported"] = tuple(Problem(**problem) for problem in result["unsupported"])
    return GraphInfo(**fields)
