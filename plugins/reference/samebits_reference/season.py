"""Seasoning: seeded weights under which two inputs give different outputs in every precision.

Fresh weights will not do: layer scales of 1e-6 and normalisation statistics of 0 and 1 let activations vanish, and then
different images give the same bits. Seasoned weights come from integer draws of one CPU generator and from analytic
scaling alone. No result of a network enters, so that the bits are the same on every machine.

With weights of zero mean and variance g / fan_in, a layer passes on g times the second moment of its input. At g = 2 ReLU
keeps it. SiLU keeps less of small activations than of large ones: biases of the order of one hold activations up, where
g = 2.1 is nearly neutral. Where a family adds branches, the gain of each is damped, else every sum would double the moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

import torch
from torch import nn

FRESH = "none: fresh weights of torch.manual_seed(seed)"
TEXT = (
    "parameters drawn as 20-bit integers from one CPU generator seeded with seed+1, in module order, scaled in float64: "
    "weights uniform with variance 2.1/fan_in, or 0.5/fan_in where the layer has a bias; biases +-0.5; "
    "weights and bias of a layer with one output not negative; "
    "normalisation weight 0.5..1.5, bias +-2 (+-0.5 without running statistics), running mean +-0.5, running variance "
    "0.5..2; embeddings and tokens +-0.5; constant-filled parameters 0.5..1 times a sign; summed branches damped: {damped}"
)

_STEPS = 1 << 20
_PART = 1 << 16  # elements; these and their numbers in float64 stay in a processor's cache

# Normalisations that end one of several branches that are added: pattern of the module's path, factor on weight and bias.
_YOLO9 = {r"\.conv[12]\.bn$": 0.7, r"\.m\.\d+\.cv2\.bn$": 0.5}
DAMPED: Mapping[str, Mapping[str, float]] = {
    "ec": {r"\.bottlenecks\.\d+\.conv[12]\.norm$": 0.6, r"\.cv[23]\.\d+\.conv1\.norm$": 0.7},
    "ppocr": {r"\.(conv_kxk\.\d+|conv_1x1)\.bn$|\.dw_conv\.identity$|\.pw_conv\.identity$": 0.74},
    "mobilenetv4": {r"\.pw_proj\.bn$": 0.5},
    "resnet": {r"layer\d+\.\d+\.bn[23]$": 0.5},
    "yolo9": _YOLO9,
    "yolo9_e2e": _YOLO9,
    "yolo9_p2": _YOLO9,
    "yolonas": {r"\.branch_3x3\.bn$": 0.5, r"\.post_bn$": 0.6},
    "zipdepth": {r"\.branch_[13]x[13]\.1$": 0.6},
}
# Biases with a range of their own: pattern of the module's path, lowest and highest.
SHIFTED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    # The sky rule takes less than 0.3 for sky, and does nothing where all of an image is one or the other.
    "depth_anything3": {r"sky_output_conv2\.2$": (-0.6, -0.1)},
}


def season(module: nn.Module, family: str, seed: int) -> str:
    """Draw every trainable parameter and every normalisation statistic anew. Gives what was done, in words."""
    damped, shifted = DAMPED.get(family, {}), SHIFTED.get(family, {})
    draw = _Draw(seed)
    seen: set[int] = set()
    with torch.no_grad():
        for path, part in module.named_modules():
            factor = next((f for pattern, f in damped.items() if re.search(pattern, path)), 1.0)
            bias = next((ends for pattern, ends in shifted.items() if re.search(pattern, path)), None)
            for tensor, low, high in _ranges(part, factor):
                if tensor.data_ptr() not in seen:
                    seen.add(tensor.data_ptr())
                    ends = bias if bias and tensor is part.bias else (low, high)
                    draw.fill(tensor, *ends)
    return words(family)


def words(family: str) -> str:
    """Say what is done to a family."""
    damped, shifted = DAMPED.get(family, {}), SHIFTED.get(family, {})
    text = TEXT.format(damped=", ".join(f"{pattern} {factor}" for pattern, factor in damped.items()) or "none")
    return text + "".join(f"; bias of {pattern} {low}..{high}" for pattern, (low, high) in shifted.items())


def _ranges(part: nn.Module, factor: float) -> Iterator[tuple[torch.Tensor, float, float]]:
    """Give the tensors that lie directly in a module with the ranges to draw from."""
    own = dict(part.named_parameters(recurse=False)) | dict(part.named_buffers(recurse=False))
    own = {name: tensor for name, tensor in own.items() if tensor is not None and tensor.is_floating_point()}
    statistics = {"running_mean", "running_var"} <= own.keys()
    norm = statistics or "norm" in type(part).__name__.lower()
    has_bias = own.get("bias") is not None
    for name, tensor in own.items():
        if name == "running_mean":
            yield tensor, -0.5, 0.5
        elif name == "running_var":
            yield tensor, 0.5, 2.0
        elif not isinstance(tensor, nn.Parameter) and not (statistics and name in ("weight", "bias")):
            continue  # anchors, position tables: a buffer is what the family computed
        elif isinstance(tensor, nn.Parameter) and not tensor.requires_grad:
            continue
        elif norm and name == "weight":
            yield tensor, 0.5 * factor, 1.5 * factor
        elif norm and name == "bias":
            reach = (2.0 if statistics else 0.5) * factor
            yield tensor, -reach, reach
        elif tensor.dim() == 0:
            continue  # a temperature
        elif name == "weight" and tensor.dim() >= 2 and not isinstance(part, nn.Embedding):
            reach = math.sqrt(3 * (0.5 if has_bias else 2.1) / _fan_in(part, tensor))
            yield tensor, 0.0 if tensor.shape[0] == 1 else -reach, reach
        elif name.endswith("weight") and tensor.dim() >= 2 and not isinstance(part, nn.Embedding):
            reach = math.sqrt(3 * 0.5 / tensor[0].numel())  # in_proj_weight
            yield tensor, -reach, reach
        elif name == "bias" and tensor.numel() == 1:
            yield tensor, 0.0, 0.5  # a depth must survive the ReLU behind it
        elif name.endswith("bias") or not bool((tensor == tensor.flatten()[0]).all()):
            yield tensor, -0.5, 0.5
        else:
            low = 0.5 if float(tensor.flatten()[0]) >= 0 else -1.0  # layer scales and the like
            yield tensor, low, low + 0.5


def _fan_in(part: nn.Module, weight: torch.Tensor) -> int:
    if isinstance(part, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d):
        return weight.shape[0] // part.groups * weight[0, 0].numel()
    return weight[0].numel()


class _Draw:
    """Uniform numbers whose bits do not depend on the CPU: integers, then one product and one sum in float64."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed((seed + 1) % 2**64)

    def fill(self, tensor: torch.Tensor, low: float, high: float) -> None:
        """Draw a tensor in row-major order, part by part: all of it at once would take ten times its memory."""
        place = tensor if tensor.is_contiguous() else torch.empty(tensor.shape, dtype=tensor.dtype)
        for part in place.view(-1).split(_PART):
            integers = torch.randint(0, _STEPS, part.shape, generator=self._generator, dtype=torch.int64)
            part.copy_(integers.double().add_(0.5).mul_((high - low) / _STEPS).add_(low))
        if place is not tensor:
            tensor.copy_(place)
