"""Nodes of captured graphs by kind, as a driver that stands in for CUDA's tells of them."""

from __future__ import annotations

import types
from typing import Any

import pytest

from samebits_reference import node_kinds


class Nodes:
    """A driver that knows some graphs: a node is a kind and what belongs to it."""

    def __init__(self, **graphs: list[tuple[int, Any]]) -> None:
        self._names = list(graphs)
        self._graphs = graphs
        self._nodes = [node for nodes in graphs.values() for node in nodes]
        self.on_host: set[int] = set()  # addresses that the driver knows as memory of the host
        self.known: set[int] = set()  # and as some of its own
        self.fails = ""

    def cuGraphGetNodes(self, graph: Any, nodes: Any, number: Any) -> int:  # noqa: N802 (the driver's name)
        if self.fails == "nodes" or (self.fails == "list" and nodes is not None):
            return 1
        found = self._graphs[self._names[graph.value - 1]]
        number._obj.value = len(found)
        for at, node in enumerate(found) if nodes is not None else ():
            nodes[at] = next(number for number, each in enumerate(self._nodes) if each is node) + 1
        return 0

    def cuGraphNodeGetType(self, node: Any, kind: Any) -> int:  # noqa: N802
        kind._obj.value = self._nodes[node.value - 1][0]
        return 0

    def cuGraphChildGraphNodeGetGraph(self, node: Any, child: Any) -> int:  # noqa: N802
        child._obj.value = self._names.index(self._nodes[node.value - 1][1]) + 1
        return int(self.fails == "child")

    def cuGraphMemcpyNodeGetParams(self, node: Any, copy: Any) -> int:  # noqa: N802
        for end, given in zip((copy._obj.source, copy._obj.target), self._nodes[node.value - 1][1], strict=True):
            for name, value in given.items():
                setattr(end, name, value)
        return int(self.fails == "copy")

    def cuPointerGetAttribute(self, found: Any, asked: int, address: Any) -> int:  # noqa: N802
        assert asked == 2
        found._obj.value = 1 if address.value in self.on_host else 2
        return int(address.value not in self.on_host | self.known)


HOST, DEVICE = {"memory": 1}, {"memory": 2}


def looked_at(driver: Nodes, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    monkeypatch.setattr(node_kinds.ctypes, "CDLL", lambda _name: driver)
    return node_kinds.count(types.SimpleNamespace(raw_cuda_graph=lambda: 1))  # type: ignore[arg-type] # it is asked


def test_nodes_are_counted_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [0, 0, 2, 3, 6, 7, 10, 11, 5, 99]
    top = [(kind, None) for kind in kinds] + [(4, "inner")]
    driver = Nodes(top=top, inner=[(0, 1), (1, (DEVICE, DEVICE)), (4, "deepest")], deepest=[(2, 2)])
    counted = looked_at(driver, monkeypatch)
    assert counted == {
        "kernel": 3, "memset": 2, "host": 1, "event": 2, "alloc": 1, "free": 1, "other": 2, "graph": 2, "memcpy_d2d": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        (DEVICE, DEVICE, "memcpy_d2d"),
        (HOST, DEVICE, "memcpy_h2d"),
        (DEVICE, HOST, "memcpy_d2h"),
        (HOST, HOST, "other"),
        ({"memory": 3, "array": 5}, HOST, "memcpy_d2h"),
        ({"memory": 4, "device": 64}, {"memory": 4, "device": 128}, "memcpy_d2h"),  # unified: the address says it
        ({"memory": 4, "host": 128}, {"memory": 4, "device": 64}, "memcpy_h2d"),
        ({"memory": 4, "device": 192}, DEVICE, "memcpy_h2d"),  # memory that the driver does not know
    ],
)
def test_copies_are_named_by_their_ends(
    source: dict[str, int], target: dict[str, int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Nodes(top=[(1, (source, target))])
    driver.known, driver.on_host = {64}, {128}
    assert looked_at(driver, monkeypatch) == {kind: 1}


@pytest.mark.parametrize(
    ("fails", "counted"),
    [("nodes", {}), ("list", {}), ("copy", {"other": 1, "graph": 1, "kernel": 1}), ("child", {"memcpy_d2d": 1, "graph": 1})],
)
def test_what_the_driver_does_not_say_is_left_out(
    fails: str, counted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Nodes(top=[(1, (DEVICE, DEVICE)), (4, "inner")], inner=[(0, None)])
    driver.fails = fails
    assert looked_at(driver, monkeypatch) == counted


def test_without_a_driver_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(node_kinds.ctypes, "CDLL", missing)
    assert not node_kinds.can_count()
    assert node_kinds.count(types.SimpleNamespace(raw_cuda_graph=lambda: 1)) == {}  # type: ignore[arg-type] # it is asked
    monkeypatch.setattr(node_kinds.ctypes, "CDLL", lambda _name: object())
    assert node_kinds.can_count()
    assert node_kinds.count(types.SimpleNamespace(raw_cuda_graph=lambda: 1)) == {}  # type: ignore[arg-type] # it is asked
