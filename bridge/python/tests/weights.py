"""Reads safetensors files, so that the tests need no package for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Give a file's tensors by name, and its metadata."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    body = raw[8 + length :]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(body[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata
