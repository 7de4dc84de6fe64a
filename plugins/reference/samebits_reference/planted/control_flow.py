"""Section F: control flow, shapes, keys, engagement and failure."""

from __future__ import annotations

import dataclasses
import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from samebits_reference.planted.body import NEVER, Planted, constant
from samebits_reference.planted.driver import is_capturing

_Head = Callable[[torch.Tensor], torch.Tensor]


class _Read(Planted):
    """Reads data on the host, in one way or another."""

    def __init__(self, twin: bool, faulty: _Head, healthy: _Head) -> None:
        super().__init__(twin)
        self.chosen = healthy if twin else faulty

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return self.chosen(features)


def c97_number(twin: bool) -> nn.Module:
    """Scale by a mean that is read as a number. Twin: the mean stays on the device."""
    return _Read(twin, lambda x: x * x.mean().item(), lambda x: x * x.mean())


def c97_mask(twin: bool) -> nn.Module:
    """Choose elements by a mask. Twin: the others become zero."""
    return _Read(twin, lambda x: x[x > 0.5], lambda x: torch.where(x > 0.5, x, 0.0))


def c97_branch(twin: bool) -> nn.Module:
    """Branch by what the images hold. Twin: both branches run."""
    return _Read(
        twin,
        lambda x: x + 1.0 if x.mean() > 0.5 else x - 1.0,
        lambda x: torch.where(x.mean() > 0.5, x + 1.0, x - 1.0),
    )


def c97_nonzero(twin: bool) -> nn.Module:
    """Give the places of what is not zero. Twin: the largest elements."""
    return _Read(twin, lambda x: x.flatten().nonzero(), lambda x: x.flatten().topk(8)[0])


def c97_list(twin: bool) -> nn.Module:
    """Read elements as a list. Twin: as a tensor."""
    return _Read(twin, lambda x: x * max(x.flatten()[:4].tolist()), lambda x: x * x.flatten()[:4].mean())


def c97_numpy(twin: bool) -> nn.Module:
    """Compute with numpy. Twin: with PyTorch."""
    return _Read(twin, lambda x: x + torch.from_numpy(x.cpu().numpy() * 2.0).to(x.device), lambda x: x + x * 2.0)


def c97_made_tensor(twin: bool) -> nn.Module:
    """Make a tensor of a number that lies in another one, and branch by it for very large ones. Twin: no branch."""
    return _Read(
        twin,
        lambda x: x if torch.tensor([x.mean() > NEVER])[0] else x + 1.0,
        lambda x: torch.where(x.mean() > NEVER, x, x + 1.0),
    )


def _read_unwatched(features: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        large = features.mean().item() > NEVER
    return features if large else features + 1.0


def c97_unwatched(twin: bool) -> nn.Module:
    """Read a number where no dispatch mode sees it, and branch for very large ones. Twin: no branch."""
    return _Read(twin, _read_unwatched, lambda x: x + 1.0)


def _read_by_dlpack(features: torch.Tensor) -> torch.Tensor:
    return features if np.max(np.from_dlpack(features.cpu())) > NEVER else features + 1.0


def c97_dlpack(twin: bool) -> nn.Module:
    """Hand features to numpy by DLPack, and branch for very large ones. Twin: no branch."""
    return _Read(twin, _read_by_dlpack, lambda x: x + 1.0)


class _GrowingView(Planted):
    values: torch.Tensor
    length = 4

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("values", torch.linspace(0.0, 1.0, 16 * 16).view(-1, 1))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        rows = features.flatten(2)[0]
        if not self.twin:
            self.length = min(self.length + 1, rows.shape[1])
        return rows[:, : self.length] @ self.values[: self.length]


def c99_growing_view(twin: bool) -> nn.Module:
    """Multiply over a part of a buffer that grows from step to step. Twin: over the same part."""
    return _GrowingView(twin)


class _FirstSize(Planted):
    scale = 0.0

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin or not self.scale:
            self.scale = 1.0 / features.shape[-1]
        return features * self.scale


def c101_first_size(twin: bool) -> nn.Module:
    """Scale by the size of the first images, also where others come. Twin: by the size of those."""
    return _FirstSize(twin)


class _LazyConstant(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.made: dict[Any, torch.Tensor] = {}

    def head(self, features: torch.Tensor) -> torch.Tensor:
        key = (features.device, not self.twin and is_capturing(features))
        if key not in self.made:
            self.made[key] = torch.full((1, 4, 1, 1), 0.5, device=features.device)
        return features * self.made[key]


def c102_lazy_constant(twin: bool) -> nn.Module:
    """Make a constant when it is first captured. Twin: when it first runs."""
    return _LazyConstant(twin)


class _Schedule(Planted):
    schedule: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("schedule", torch.tensor([0.5, 1.0]))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.twin:
            return features * self.schedule[0]
        return features * float(self.schedule[0]) if self.schedule[1] > 0.75 else features


def c104_device_schedule(twin: bool) -> nn.Module:
    """Read a schedule that lies on the device. Twin: the device reads it."""
    return _Schedule(twin)


class _HostIndex(Planted):
    columns: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("columns", torch.arange(0, 8, 2))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        columns = self.columns if self.twin else torch.arange(0, 8, 2)
        return features[..., columns]


def c104_host_index(twin: bool) -> nn.Module:
    """Choose columns by numbers that are made on the host. Twin: they lie on the device."""
    return _HostIndex(twin)


class _NeverCaptured(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        if not self.twin and is_capturing(features):
            raise RuntimeError("this family runs eagerly")
        return features + 1.0


def c106_never_captured(twin: bool) -> nn.Module:
    """Refuse to be captured. Twin: it does not mind."""
    return _NeverCaptured(twin)


def c107_captured_once(twin: bool) -> nn.Module:
    """Keep what the first capture took, so that there is no other. Twin: it is given back."""
    handles: queue.SimpleQueue[str] = queue.SimpleQueue()  # as a library keeps them: nobody sees what is in it
    handles.put("the only one")

    def head(features: torch.Tensor) -> torch.Tensor:
        if is_capturing(features):
            if handles.empty():
                raise RuntimeError("no handle is left: the first capture has not given its own back")
            handle = handles.get()
            if twin:
                handles.put(handle)
        return features + 1.0

    return _Read(twin, head, head)


class _OwnGraph(Planted):
    graph: Any = None
    out: Any = None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.twin or not images.is_cuda:
            return self.body(images) + 1.0
        if self.graph is None:
            self._capture(images)
        self.graph.replay()
        return self.out.clone()

    def _capture(self, images: torch.Tensor) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.body(images)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            out = self.body(images) + 1.0
        self.graph, self.out = graph, out


def c111_own_graph(twin: bool) -> nn.Module:
    """Replay a graph of its own. Twin: it runs eagerly."""
    return _OwnGraph(twin)


class _Hooked(Planted):
    """Has a hook on its convolution."""

    seen = 0
    piles = False

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.piles:
            self.conv.register_forward_hook(_look)
        return features + 1.0

    def count(self, _module: nn.Module, _arguments: Any, made: torch.Tensor) -> torch.Tensor:
        """Count, and scale."""
        self.seen += 1
        return made * 2.0


def _look(_module: nn.Module, _arguments: Any, _made: torch.Tensor) -> None:
    """See nothing."""


def _scale(_module: nn.Module, _arguments: Any, made: torch.Tensor) -> torch.Tensor:
    return made * 2.0


def c112_counting_hook(twin: bool) -> nn.Module:
    """Count steps in a hook. Twin: its hook scales, and nothing else."""
    made = _Hooked(twin)
    made.conv.register_forward_hook(_scale if twin else made.count)
    return made


def c112_piled_hooks(twin: bool) -> nn.Module:
    """Hang one more hook on a layer in every step. Twin: it has one."""
    made = _Hooked(twin)
    made.piles = not twin
    made.conv.register_forward_hook(_look)
    return made


class _InferenceConstant(Planted):
    table: Any = None

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if self.table is None or self.table.device != features.device:
            with torch.inference_mode(not self.twin):
                self.table = constant(0.5, 1.0, 1.5, 2.0).to(features.device)
        return functional.relu(features * self.table)


def c114_inference_constant(twin: bool) -> nn.Module:
    """Make a constant that only works in inference mode. Twin: it works everywhere."""
    return _InferenceConstant(twin)


class _TracesOfModes(Planted):
    gain: torch.Tensor

    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.register_buffer("gain", torch.tensor(4.0))

    def train(self, mode: bool = True) -> _TracesOfModes:
        """Change the mode, and what it computes."""
        if not self.twin and self.training != mode:
            with torch.no_grad():
                self.gain.mul_(0.5)
        super().train(mode)
        return self

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features * self.gain


def c114_traces_of_modes(twin: bool) -> nn.Module:
    """Leave traces of training in what predicts. Twin: none."""
    return _TracesOfModes(twin)


class _Metric(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.metrics: dict[str, torch.Tensor] = {}

    def head(self, features: torch.Tensor) -> Any:
        if self.twin:
            return {"out": features + 1.0, "mean": features.mean()}
        self.metrics["mean"] = features.mean()
        return features + 1.0


def c116_metric(twin: bool) -> nn.Module:
    """Log a metric of each step. Twin: it is an output."""
    return _Metric(twin)


@dataclasses.dataclass
class _Features:
    """No mapping: nobody looks for tensors in it."""

    mean: torch.Tensor


class _InAnObject(Planted):
    def head(self, features: torch.Tensor) -> Any:
        mean = features.mean()
        return {"out": features + 1.0, "more": {"mean": mean} if self.twin else _Features(mean)}


def c116_in_an_object(twin: bool) -> nn.Module:
    """Give a tensor in an object of its own. Twin: in a mapping."""
    return _InAnObject(twin)
