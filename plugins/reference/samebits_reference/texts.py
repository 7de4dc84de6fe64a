"""Keeps what text towers make of a thousand class names: it takes a processor minutes, and all processes of a cell need it.

A file is named by all that its numbers depend on: the weights, the texts, PyTorch, the processor and the threads. A damaged
one is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

_NAME = "embeddings"


def remembering(model_class: Any, state: Mapping[str, torch.Tensor], folder: Path | None = None) -> Any:
    """Give a class whose texts are encoded once for these weights, and read from a file from then on."""
    into = folder or Path.home() / ".cache" / "samebits" / "texts"

    def encode(self: Any, texts: list[str], chunk: int = 256) -> torch.Tensor:
        if str(self.device) != "cpu":
            return model_class._encode_texts(self, texts, chunk)
        return _kept(into, _key(model_class, state, texts, chunk), lambda: model_class._encode_texts(self, texts, chunk))

    return type(model_class.__name__, (model_class,), {"_encode_texts": encode, "__module__": model_class.__module__})


def _key(model_class: Any, state: Mapping[str, torch.Tensor], texts: Sequence[str], chunk: int) -> str:
    key = hashlib.sha256()
    for item in (
        model_class.__name__,
        torch.__version__,
        torch.backends.cpu.get_cpu_capability(),
        torch.get_num_threads(),
        chunk,
        list(texts),
    ):
        key.update(f"{item!r}\n".encode())
    for name, tensor in sorted(state.items()):
        key.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        key.update(_bytes(tensor))
    return key.hexdigest()


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _kept(folder: Path, key: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    file = folder / f"{key}.safetensors"
    with _alone(file):
        kept = _read(file)
        if kept is None:
            kept = make()
            _write(file, kept)
    return kept


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let other processes that want the same file wait until it is there, where they can."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # without a lock the work may be done twice
            file.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context(file.with_suffix(".lock").open("w")), fcntl.LOCK_EX)
        yield


def _read(file: Path) -> torch.Tensor | None:
    try:
        with safe_open(file, "pt") as opened:
            tensor: torch.Tensor = opened.get_tensor(_NAME)
            sound = (opened.metadata() or {}).get("sha256") == hashlib.sha256(_bytes(tensor)).hexdigest()
    except (OSError, SafetensorError):
        return None
    return tensor if sound else None


def _write(file: Path, tensor: torch.Tensor) -> None:
    unfinished = file.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError, SafetensorError):  # nothing depends on it
        save_file({_NAME: tensor.contiguous()}, unfinished, {"sha256": hashlib.sha256(_bytes(tensor)).hexdigest()})
        unfinished.replace(file)
