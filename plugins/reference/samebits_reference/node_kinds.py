"""Looks into a captured graph by the driver: how many nodes of which kind it has."""

from __future__ import annotations

import collections
import contextlib
import ctypes

import torch

_KERNEL, _MEMCPY, _GRAPH = 0, 1, 4  # of CUgraphNodeType
_KINDS = {
    _KERNEL: "kernel",
    2: "memset",
    3: "host",
    6: "event",  # waits for one
    7: "event",  # records one
    10: "alloc",
    11: "free",
}
_HOST_MEMORY, _DEVICE_MEMORY = 1, 2  # of CUmemorytype; the others are an array, and whatever the address says
_ASK_MEMORY_TYPE = 2  # of CUpointer_attribute


class _End(ctypes.Structure):
    """One end of CUDA_MEMCPY3D."""

    _fields_ = [
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("z", ctypes.c_size_t),
        ("lod", ctypes.c_size_t),
        ("memory", ctypes.c_int),
        ("host", ctypes.c_void_p),
        ("device", ctypes.c_uint64),
        ("array", ctypes.c_void_p),
        ("reserved", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        ("source", _End),
        ("target", _End),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    ]


def can_count() -> bool:
    """Say whether there is a driver to ask."""
    with contextlib.suppress(OSError):
        return bool(ctypes.CDLL("libcuda.so.1"))
    return False


def count(graph: torch.cuda.CUDAGraph) -> dict[str, int]:
    """Count the nodes of a captured graph that was kept, child graphs entered. Empty: it has none, or nobody can look."""
    kinds: collections.Counter[str] = collections.Counter()
    with contextlib.suppress(OSError, AttributeError):
        _count(ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(graph.raw_cuda_graph()), kinds)
    return dict(kinds)


def _count(driver: ctypes.CDLL, graph: ctypes.c_void_p, kinds: collections.Counter[str]) -> None:
    number = ctypes.c_size_t()
    if driver.cuGraphGetNodes(graph, None, ctypes.byref(number)) != 0:
        return
    nodes = (ctypes.c_void_p * number.value)()
    if driver.cuGraphGetNodes(graph, nodes, ctypes.byref(number)) != 0:
        return
    for handle in nodes[: number.value]:
        node, kind = ctypes.c_void_p(handle), ctypes.c_int(-1)
        driver.cuGraphNodeGetType(node, ctypes.byref(kind))
        if kind.value == _MEMCPY:
            kinds[_copy_kind(driver, node)] += 1
            continue
        if kind.value == _GRAPH:
            kinds["graph"] += 1
            child = ctypes.c_void_p()
            if driver.cuGraphChildGraphNodeGetGraph(node, ctypes.byref(child)) == 0:
                _count(driver, child, kinds)
            continue
        kinds[_KINDS.get(kind.value, "other")] += 1


def _copy_kind(driver: ctypes.CDLL, node: ctypes.c_void_p) -> str:
    copy = _Copy()
    if driver.cuGraphMemcpyNodeGetParams(node, ctypes.byref(copy)) != 0:
        return "other"
    source, target = (_on_host(driver, end) for end in (copy.source, copy.target))
    return {(False, False): "memcpy_d2d", (True, False): "memcpy_h2d", (False, True): "memcpy_d2h"}.get(
        (source, target), "other"
    )


def _on_host(driver: ctypes.CDLL, end: _End) -> bool:
    if end.memory == _HOST_MEMORY:
        return True
    if end.memory == _DEVICE_MEMORY or end.array:
        return False
    found = ctypes.c_int()
    # Memory that the driver does not know is the host's, and pageable.
    asked = driver.cuPointerGetAttribute(ctypes.byref(found), _ASK_MEMORY_TYPE, ctypes.c_uint64(end.device or end.host or 0))
    return bool(asked != 0 or found.value == _HOST_MEMORY)
