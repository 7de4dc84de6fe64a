"""A host's dealings with an arm in mode train, and the same arithmetic written out by hand."""

from __future__ import annotations

import contextlib
import dataclasses

import torch
from conftest import HostMemory, same_bits
from libreyolo.training.ema import ModelEMA
from torch import nn

from samebits_reference import families
from samebits_reference.arms import EAGER, ReferenceArm
from samebits_reference.families import Order
from samebits_wire import arm_pb2 as wire

CHECKPOINT, RECORDING, WEIGHTS = (
    getattr(wire.ExportRequest, f"WHAT_{what}") for what in ("CHECKPOINT", "RECORDING", "WEIGHTS")
)
BATCH, SHORT = 3, 2


@dataclasses.dataclass(frozen=True)
class Hyper:
    lr: tuple[float, float, float] = (0.01, 0.01, 0.01)
    weight_decay: tuple[float, float, float] = (0.0, 5e-4, 0.0)
    momentum: float = 0.9
    ema_decay: float = 0.99


def batch(seed: int, size: int = BATCH, imgsz: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(size, 3, imgsz, imgsz, generator=generator)
    return images, torch.randint(0, 1000, (size,), generator=generator)


class Host:
    """Drives one arm. Every output has a place; a bank for batches of BATCH, one for shorter ones."""

    def __init__(self, arm: str = EAGER, precision: str = "fp32", device: str = "cpu") -> None:
        self.memory, self.arm, self.name = HostMemory(2 << 30), ReferenceArm(), arm
        request = wire.BuildRequest(
            family="resnet", arm=arm, precision=precision, device=device, imgsz=64, batch=BATCH, mode="train"
        )
        self.built = self.arm.build(request, self.memory.memory)
        short = [wire.TensorSpec(name=s.name, dtype=s.dtype, sizes=s.sizes) for s in self.built.inputs]
        for spec in short[:2]:
            spec.sizes[0] = SHORT
        self.inputs = [self.memory.bank(self.built.inputs), self.memory.bank(short)]
        self.outputs = self.memory.bank(self.built.outputs)
        self.names = [spec.name for spec in self.built.outputs]
        self.weights = self.memory.put(self.export(WEIGHTS, self.built.weights_length))
        self.saved = self.memory.region(self.built.checkpoint_length)

    def export(self, what: int, length: int) -> bytes:
        place = self.memory.region(length)
        self.arm.export(wire.ExportRequest(what=what, region=place), self.memory.memory)
        return bytes(self.memory.memory.view(place))

    def checkpoint(self) -> bytes:
        self.arm.export(wire.ExportRequest(what=CHECKPOINT, region=self.saved), self.memory.memory)
        return bytes(self.memory.memory.view(self.saved))

    def begin(self, checkpoint: bytes = b"", graph: bool = False) -> wire.PrepareReply:
        request = wire.LoadRequest(weights=self.weights, arm=self.name)
        if checkpoint:
            request.checkpoint.CopyFrom(self.memory.put(checkpoint))
        self.arm.load(request, self.memory.memory)
        prepare = wire.PrepareRequest(inputs=self.inputs, outputs=[self.outputs], cuda_graph=graph)
        return self.arm.prepare(prepare, self.memory.memory)

    def fill(self, images: torch.Tensor, targets: torch.Tensor, hyper: Hyper) -> int:
        bank = 0 if len(images) == BATCH else 1
        places = self.memory.tensors(self.inputs[bank])
        values = [hyper.lr, hyper.weight_decay, [hyper.momentum], [hyper.ema_decay]]
        given = [images, targets, *(torch.tensor(value, dtype=torch.float64) for value in values)]
        for place, tensor in zip(places, given, strict=True):
            place.copy_(tensor)
        return bank

    def step(self, images: torch.Tensor, targets: torch.Tensor, hyper: Hyper) -> dict[str, torch.Tensor]:
        self.arm.step(self.fill(images, targets, hyper), 0)
        return self.read()

    def read(self) -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in zip(self.names, self.memory.tensors(self.outputs), strict=True)}

    def record(self, seed: int = 1, size: int = BATCH) -> wire.RecordReply:
        bank = self.inputs[self.fill(*batch(seed, size), Hyper())]
        return self.arm.record(wire.RecordRequest(inputs=bank), self.memory.memory)


class ByHand:
    """LibreYOLO's loop without LibreYOLO's trainer: network, cross entropy, torch's SGD over its three groups, average."""

    def __init__(self, precision: str = "fp32", device: str = "cpu") -> None:
        self.module = families.build(Order("resnet", imgsz=64, batch=BATCH, device=device)).module.train()
        norms, weights, biases = [], [], []
        for _, part in self.module.named_modules():
            if isinstance(part, nn.BatchNorm2d):
                norms.append(part.weight)
                biases.append(part.bias)
            elif isinstance(part, nn.Conv2d | nn.Linear):
                weights.append(part.weight)
                if part.bias is not None:
                    biases.append(part.bias)
        groups = [{"params": group} for group in (norms, weights, biases)]
        self.optimizer = torch.optim.SGD(groups, lr=1.0, momentum=0.5, nesterov=True)
        self.average = ModelEMA(self.module)
        self._precision, self._device = precision, device

    def step(self, images: torch.Tensor, targets: torch.Tensor, hyper: Hyper) -> dict[str, torch.Tensor]:
        autocast: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if self._precision == "bf16":
            autocast = torch.autocast(self._device.partition(":")[0], torch.bfloat16, cache_enabled=False)
        with autocast:
            loss = nn.functional.cross_entropy(self.module(images.to(self._device)), targets.to(self._device))
        self.optimizer.zero_grad()
        loss.backward()
        for group, lr, decay in zip(self.optimizer.param_groups, hyper.lr, hyper.weight_decay, strict=True):
            group["lr"], group["weight_decay"], group["momentum"] = lr, decay, hyper.momentum
        self.optimizer.step()
        self.average.set_decay(hyper.ema_decay)
        self.average.update(self.module)
        out = {"loss": loss.detach()}
        for name, parameter in self.module.named_parameters():
            out[f"grad.{name}"] = parameter.grad
            out[f"param.{name}"] = parameter
            out[f"momentum.{name}"] = self.optimizer.state[parameter]["momentum_buffer"]
            out[f"ema.{name}"] = self.average.ema.get_parameter(name)
        for name, buffer in self.module.named_buffers():
            out[f"buffer.{name}"] = buffer
            if buffer.is_floating_point():
                out[f"ema.{name}"] = self.average.ema.get_buffer(name)
        return {name: tensor.detach().cpu().clone() for name, tensor in out.items()}


def differing(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], kinds: str = "") -> list[str]:
    """Names whose bits differ; kinds restricts to names that begin so."""
    assert one.keys() == other.keys()
    return [name for name in one if name.startswith(kinds) and not same_bits(one[name], other[name])]
