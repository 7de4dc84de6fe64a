"""What load and load_trainer share: files, options, what a loaded recording says of itself."""

from __future__ import annotations

import errno
import importlib.util
import json
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np

from ._arrays import TensorSpec, specs
from ._calls import Handle, run, settle
from ._errors import ClosedError, InputError, Problem, WeightsError

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]
GraphMode = Union[bool, Literal["auto"]]

_log = logging.getLogger("samebits")

RECORDING_FILE = "recording.pb"
WEIGHTS_FILE = "weights.safetensors"


def sources(recording: Source, weights: Source | None) -> tuple[Source, Source]:
    """Find the two files. A folder that `parity record` wrote has both."""
    check_source(recording, "recording")
    if weights is not None:
        check_source(weights, "weights")
    if isinstance(recording, (str, os.PathLike)) and Path(recording).is_dir():
        folder = Path(recording)
        return folder / RECORDING_FILE, folder / WEIGHTS_FILE if weights is None else weights
    if weights is None and isinstance(recording, (str, os.PathLike)) and not Path(recording).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(recording))
    if weights is None:
        raise TypeError("weights are needed beside a recording that is no folder")
    return recording, weights


def check_source(source: Any, name: str) -> None:
    """Refuse what is neither a path nor bytes."""
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is a path or bytes, not {type(source).__name__}")


class Bytes:
    """A file's content, or the bytes that were given, as an address and a length."""

    def __init__(self, source: Source, name: str = "weights") -> None:
        check_source(source, name)
        data = Path(source).read_bytes() if isinstance(source, (str, os.PathLike)) else source
        if name == "weights" and bytes(data[:4]) == b"PK\x03\x04":
            how = "safetensors.torch.save_file(model.state_dict(), path) writes such a file"
            problem = Problem(
                "NOT_SAFETENSORS", "a ZIP archive, as torch.save writes, is no safetensors file", "weights", how
            )
            raise WeightsError(str(problem), [problem])
        self.data = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
        self.span = (self.data.ctypes.data, self.data.nbytes)


def device_name(device: Any) -> str:
    """Give the engine's name of a device: torch's cpu is its host, cuda its current GPU, auto the first usable one."""
    name = str(device)
    if name == "auto":
        found = run("Devices", json.dumps({"torch": torch_folders()}))["devices"]
        return next((d["name"] for d in found if d["name"] != "host" and not d.get("problem")), "host")
    if name == "cpu":
        return "host"
    if name == "cuda":
        torch = sys.modules.get("torch")
        return f"cuda:{torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0}"
    return name


def torch_folders() -> list[str]:
    """List the folders of the CUDA libraries that the torch of this interpreter brings, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return []
    site = Path(spec.origin).parent.parent
    folders = [*sorted((site / "nvidia").glob("*/lib")), site / "torch" / "lib"]
    return [str(folder) for folder in folders if folder.is_dir()]


def torch_version() -> tuple[str, str]:
    """Give version and revision of this interpreter's torch, without importing it: certificates are bound to them."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return "", ""
    try:
        text = (Path(spec.origin).parent / "version.py").read_text()
    except OSError:
        return "", ""
    said = dict(re.findall(r"^(__version__|git_version) = '([^']*)'", text, re.MULTILINE))
    return said.get("__version__", ""), said.get("git_version", "")


def graph_mode(cuda_graph: Any) -> str:
    """Give the engine's word for cuda_graph: True, False, or "auto" in any case, as a string also "true" and "false"."""
    if isinstance(cuda_graph, (bool, np.bool_)):
        return "on" if cuda_graph else "off"
    if not isinstance(cuda_graph, str):
        raise TypeError(f"cuda_graph is True, False or 'auto', not {cuda_graph!r}")
    known = {"auto": "auto", "true": "on", "false": "off"}
    if cuda_graph.lower() not in known:
        problem = Problem("WRONG_GRAPH_MODE", f"{cuda_graph!r}; there are True, False and 'auto'", "cuda_graph")
        raise InputError(str(problem), [problem])
    return known[cuda_graph.lower()]


def load_options(device: Any, cuda_graph: Any, certificates: str | os.PathLike[str] | None) -> str:
    """Write the options of LoadModel and LoadTrainer."""
    mode = graph_mode(cuda_graph)  # before any work
    settle()
    version, revision = torch_version()
    return json.dumps(
        {
            "device": device_name(device),
            "graph": mode,
            "torch": torch_folders(),
            "torch_version": version,
            "torch_revision": revision,
            "certificates": "" if certificates is None else os.fsdecode(certificates),
        }
    )


def log_line(described: Mapping[str, Any]) -> None:
    """Log why steps run eagerly though graphs were asked for."""
    if described["line"]:
        _log.warning("%s", described["line"])


class Loaded:
    """A recording that the engine holds. The base of Model and Trainer, which `load` and `load_trainer` make."""

    _what = "model"

    def __init__(self, handle: Handle, described: Mapping[str, Any]) -> None:
        """Use `samebits.load` or `samebits.load_trainer` instead."""
        self._handle = handle
        self.family: str = described["family"]
        self.size: str = described["size"]
        self.task: str = described["task"]
        self.mode: str = described["mode"]
        self.precision: str = described["precision"]
        self.profile: str = described["profile"]
        self.imgsz: int = described["imgsz"]
        self.batch: int = described["batch"]
        self.digest: str = described["digest"]
        self.device: str = described["device"]
        self.environment: dict[str, str] = described["environment"]
        self.peak_bytes: int = described["peak_bytes"]
        self.inputs: tuple[TensorSpec, ...] = specs(described["inputs"])
        self.outputs: tuple[TensorSpec, ...] = specs(described["outputs"])
        self._shapes = [(self.inputs, self.outputs)]  # of every recording
        log_line(described)

    @property
    def closed(self) -> bool:
        """Whether close was called."""
        return self._handle.closed

    def close(self) -> None:
        """Free the device's memory, once a call that runs in another thread is done. A second call does nothing."""
        self._handle.close()

    def _call(self, name: str, *arguments: int | str) -> dict[str, Any]:
        """Run a job of the engine on what this object holds."""
        if self._handle.closed:
            raise ClosedError(f"the {self._what} {self.family}-{self.size} is closed")
        return run(name, self._handle.number, *arguments)

    def _fitting(self, given: Sequence[Any] | Mapping[str, Any]) -> list[int]:
        """List the recordings that take arrays of these shapes and types; the first, if none does: for its errors."""
        if len(self._shapes) == 1:
            return [0]
        fitting = []
        for number, (inputs, _) in enumerate(self._shapes):
            arrays = [given.get(spec.name) for spec in inputs] if isinstance(given, Mapping) else given
            if [tuple(getattr(array, "shape", ())) for array in arrays] == [spec.shape for spec in inputs]:
                fitting.append(number)
        alike = [n for n in fitting if _same_types(given, self._shapes[n][0])]
        return alike or fitting or [0]

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        inputs = ", ".join(map(str, self.inputs))
        name = type(self).__name__
        return f"<samebits.{name} {self.family}-{self.size} {self.task} {self.precision} on {self.device}: {inputs}{state}>"


def _same_types(given: Sequence[Any] | Mapping[str, Any], inputs: tuple[TensorSpec, ...]) -> bool:
    arrays = [given[spec.name] for spec in inputs] if isinstance(given, Mapping) else given
    return all(
        str(getattr(array, "dtype", "")).removeprefix("torch.") == spec.dtype
        for array, spec in zip(arrays, inputs, strict=True)
    )
