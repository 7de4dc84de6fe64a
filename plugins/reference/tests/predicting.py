"""A host that predicts pictures: one arm for what lies around steps, another one for the steps."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from conftest import HostMemory
from PIL import Image

from samebits_reference.arms import EAGER, GRAPH, ReferenceArm
from samebits_wire import arm_pb2 as wire
from samebits_wire.recording_pb2 import Setting


def picture(path: pathlib.Path, width: int, height: int, seed: int = 0) -> pathlib.Path:
    """Write a smooth picture with some noise."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [np.sin(rows / (3 + c + seed)) + np.cos(columns / (5 + c)) for c in range(3)]
    pixels = 128 + 40 * np.stack(waves, -1) + random.normal(0, 12, (height, width, 3))
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    return path


class Host:
    """Two arms of one family."""

    def __init__(self, memory: HostMemory, arm: str = EAGER, device: str = "cpu", /, **order: Any) -> None:
        self.memory, self.arm = memory, arm
        self.around, self.steps = ReferenceArm(), ReferenceArm()
        for process, name in ((self.around, EAGER), (self.steps, arm)):
            self.built = process.build(wire.BuildRequest(arm=name, device=device, **order), memory.memory)
        self.shapes: list[tuple[int, ...]] = []  # of the steps

    def process(self, stage: str, bank: wire.Bank | None = None, /, **settings: Any) -> wire.ProcessReply:
        """Do one stage. A setting that is a list comes several times."""
        request = wire.ProcessRequest(stage=stage, bank=bank)
        for key, values in settings.items():
            request.settings.extend(
                Setting(key=key, value=str(v)) for v in (values if isinstance(values, list) else [values])
            )
        return self.around.process(request, self.memory.memory)

    def begin(self, number: str, sources: Sequence[pathlib.Path], **settings: Any) -> wire.ProcessReply:
        """Begin a prediction."""
        names = [source.name for source in sources]
        return self.process("begin", number=number, source=[str(source) for source in sources], name=names, **settings)

    def go_on(self, number: str, reply: wire.ProcessReply) -> dict[str, Any]:
        """Run the steps that a prediction wants, up to its end."""
        while reply.tensors:
            self.shapes.append(tuple(reply.tensors[0].sizes))
            inputs = self.memory.bank(reply.tensors)
            outputs = self.memory.bank(self.process("give", inputs, number=number).tensors)
            request = wire.PrepareRequest(inputs=[inputs], outputs=[outputs], cuda_graph=self.arm == GRAPH)
            self.steps.prepare(request, self.memory.memory)
            self.steps.step(0, 0)
            reply = self.process("finish", outputs, number=number)
        return json.loads(reply.text)

    def predict(self, *sources: pathlib.Path, **settings: Any) -> dict[str, Any]:
        """Predict pictures together."""
        return self.go_on("1", self.begin("1", sources, **settings))
