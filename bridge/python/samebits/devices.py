"""The devices of this machine."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ._calls import run, settle
from ._loading import torch_folders


@dataclass(frozen=True)
class Device:
    """A device, usable or not: `problem` says why not, `environment` what it is."""

    name: str
    problem: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether it can be opened."""
        return not self.problem


def devices() -> list[Device]:
    """Try the CPU (``host``) and every GPU (``cuda:N``) of this machine."""
    settle()
    found = run("Devices", json.dumps({"torch": torch_folders()}))
    return [
        Device(d["name"], d.get("problem", ""), {s["Key"]: s["Value"] for s in d.get("environment", [])})
        for d in found["devices"]
    ]
