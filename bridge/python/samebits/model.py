"""Prediction: load a recording, call it on arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ._arrays import Array, Kind, TensorSpec, over, specs
from ._calls import Handle, View, run
from ._errors import InputError, Problem
from ._graphs import Graphed
from ._loading import Bytes, GraphMode, Source, graph_mode, load_options, log_line, sources
from ._steps import Inputs, Outputs, current_stream

if TYPE_CHECKING:
    import torch


def load(
    recording: Source,
    weights: Source | None = None,
    *,
    device: Any = "host",
    cuda_graph: GraphMode = False,
    certificates: str | os.PathLike[str] | None = None,
) -> Model:
    """Load a recording of mode ``predict`` with its weights.

    Args:
        recording: path of the recording, or its bytes, or the folder that ``parity record`` wrote.
        weights: path or bytes of the safetensors file; of a folder, its own by default.
        device: ``host`` (the CPU), ``cuda:N``, ``auto`` (the first usable GPU, else ``host``), or a torch.device.
        cuda_graph: ``True`` captures a shape's step when it first runs and replays it from then on; ``"auto"`` (in any case)
            does so when it runs the third time. Both ask for a certificate: without one that verifies here ``True`` is an
            `UncertifiedError`, and ``"auto"`` runs eagerly, which one line says in the log ``samebits``. There are none
            for ``host``.
        certificates: a file or a folder; by default what SAMEBITS_CERTIFICATES names, or else those of this package.

    Raises:
        OSError: a file cannot be read.
        RecordingError, WeightsError: what is in it is unsound; `problems` lists everything.
        UnsupportedError: the engine lacks operations; `problems` lists all of them.
        UncertifiedError: `cuda_graph` is ``True`` and no certificate lets the cell be replayed here.
        DeviceError, OutOfMemoryError: the device is missing, has no compiler, or no room.

    On ``host``, kernels are compiled by the machine's C++ compiler when they are first used, and kept.

    """
    recording, weights = sources(recording, weights)
    options = load_options(device, cuda_graph, certificates)
    recording_bytes, weights_bytes = Bytes(recording), Bytes(weights)
    handle = Handle("model")
    described = run("LoadModel", handle.number, *recording_bytes.span, *weights_bytes.span, options)
    handle.loaded = True
    return Model(handle, described, weights)


class Model(Graphed):
    """A recording that is ready to run. `load` makes it, and ``with`` closes it.

    It may be called from many threads; it runs one step at a time. `add_recording` loads the same family at another shape.

    Attributes:
        inputs, outputs: a `TensorSpec` for each tensor, in the first recording's order.
        family, size, task, precision, profile, imgsz, batch: what was recorded first.
        digest: the recording's BLAKE3, which names it.
        device: ``host`` or ``cuda:N``. `environment` says more of it.
        peak_bytes: the most device memory that it holds.

    """

    def __init__(self, handle: Handle, described: Mapping[str, Any], weights: Source) -> None:
        """Use `samebits.load` instead."""
        super().__init__(handle, described)
        self._weights = weights

    def add_recording(self, recording: Source, weights: Source | None = None) -> None:
        """Load a further recording of this family: another image size, batch or precision, each with a graph of its own.

        `predict` takes the one that its arrays fit. Each needs a certificate of its own to be replayed.

        Args:
            recording: as of `load`.
            weights: of a folder, its own; else those that the model was loaded with.

        """
        if weights is None and not (isinstance(recording, (str, os.PathLike)) and Path(recording).is_dir()):
            weights = self._weights
        recording, weights = sources(recording, weights)
        recording_bytes, weights_bytes = Bytes(recording), Bytes(weights)
        described = self._call("AddRecording", *recording_bytes.span, *weights_bytes.span)
        self._shapes.append((specs(described["inputs"]), specs(described["outputs"])))
        log_line(described)

    @overload
    def predict(
        self,
        *images: np.ndarray[Any, Any],
        out: Mapping[str, np.ndarray[Any, Any]] | None = None,
        copy: bool = True,
        cuda_graph: GraphMode | None = None,
    ) -> dict[str, np.ndarray[Any, Any]]: ...
    @overload
    def predict(
        self,
        *images: torch.Tensor,
        out: Mapping[str, torch.Tensor] | None = None,
        copy: bool = True,
        cuda_graph: GraphMode | None = None,
    ) -> dict[str, torch.Tensor]: ...
    @overload
    def predict(
        self,
        images: Mapping[str, Array],
        /,
        *,
        out: Mapping[str, Array] | None = None,
        copy: bool = True,
        cuda_graph: GraphMode | None = None,
    ) -> dict[str, Any]: ...
    def predict(
        self,
        *images: Any,
        out: Mapping[str, Any] | None = None,
        copy: bool = True,
        cuda_graph: GraphMode | None = None,
    ) -> dict[str, Any]:
        """Run one step and give its outputs by name.

        Args:
            images: the inputs in the order of `inputs`, or one mapping from their names. NumPy arrays give NumPy arrays,
                torch tensors give tensors on the same device. They must have the recording's dtype and shape and be
                contiguous: nothing is converted. Arrays of the host are read where they lie. Tensors on the model's
                CUDA device never leave it; the step comes after what is on torch's current stream and before what is
                put there next, and nothing waits.
            out: arrays for some or all outputs, to be written and returned instead of new ones.
            copy: ``False`` gives arrays that lie in the model's own memory. The next step overwrites them.
            cuda_graph: of this step alone, as of `load`; ``False`` runs it eagerly, whatever was captured.

        Raises:
            UncertifiedError: `cuda_graph` is ``True`` and no certificate lets the cell be replayed here.
            DTypeError, ShapeError, StridesError: an array does not fit; InputError: several reasons, or another one.
            ClosedError, ForkedError: the model cannot be used any longer, or not in this process.
            DeviceError: the step failed.

        """
        mode = "" if cuda_graph is None else graph_mode(cuda_graph)
        given: Any = images[0] if len(images) == 1 and isinstance(images[0], Mapping) else images
        numbers = self._fitting(given)
        wanted_inputs, wanted_outputs = self._shapes[numbers[0]]
        inputs = Inputs(given, wanted_inputs, self.device)
        step = {
            "inputs": inputs.addresses,
            "on_device": inputs.on_device,
            "stream": current_stream(self.device) if inputs.on_device else 0,
            "shapes": numbers,
            "graph": mode,
        }
        if not copy:
            self._check_in_place(inputs, out)
            result = self._call("Predict", json.dumps({**step, "outputs": [], "view": True}))
            return self._arrays_over(wanted_outputs, result, inputs.kind)
        outputs = Outputs(wanted_outputs, inputs, out or {})
        self._call("Predict", json.dumps({**step, "outputs": outputs.addresses, "view": False}))
        return outputs.finish()

    __call__ = predict

    def _check_in_place(self, inputs: Inputs, out: Mapping[str, Any] | None) -> None:
        if out:
            problem = Problem("WRONG_ARGUMENT", "copy=False leaves outputs where they are, out= names other places", "out")
            raise InputError(str(problem), [problem])
        if not inputs.on_device and self.device != "host":
            problem = Problem(
                "WRONG_DEVICE", f"copy=False gives arrays on {self.device}, the inputs are not there", "inputs"
            )
            raise InputError(str(problem), [problem])

    def _arrays_over(self, wanted: tuple[TensorSpec, ...], result: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
        view = View(result["view"])
        return {
            spec.name: over(spec, address, view, kind, self.device)
            for spec, address in zip(wanted, result["addresses"], strict=True)
        }

    def input_buffers(self, kind: Literal["numpy", "torch"] | None = None, *, recording: int = 0) -> dict[str, Any]:
        """Give the memory that the model reads its inputs from, as arrays; of a further recording by its number.

        Write to them and pass them to `predict`: then nothing is copied at all. They stay the same for the model's life.
        """
        if not 0 <= recording < len(self._shapes):
            problem = Problem("NO_RECORDING", f"there is no recording {recording} of {len(self._shapes)}", "recording")
            raise InputError(str(problem), [problem])
        kind = kind or ("numpy" if self.device == "host" else "torch")
        if kind == "numpy" and self.device != "host":
            problem = Problem("WRONG_DEVICE", f"NumPy has no arrays on {self.device}", "inputs", "take torch tensors")
            raise InputError(str(problem), [problem])
        return self._arrays_over(self._shapes[recording][0], self._call("ViewInputs", recording), kind)

    def load_weights(self, weights: Source) -> None:
        """Replace the weights, from the path or bytes of a safetensors file. A captured graph stays valid."""
        data = Bytes(weights)
        self._call("LoadWeights", *data.span)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
