"""What planted families have in common: a convolution, and something done with what it gives."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

NEVER = 1e6  # no feature of a test is as large


class Planted(nn.Module):
    """A small network. Subclasses change what happens behind its convolution; a twin does so without the fault."""

    def __init__(self, twin: bool) -> None:
        super().__init__()
        self.twin = twin
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)

    def body(self, images: torch.Tensor) -> torch.Tensor:
        """Give features: four channels of half the height and width."""
        return torch.relu(self.conv(images))

    def forward(self, images: torch.Tensor) -> Any:
        """Run the network."""
        return self.head(self.body(images))

    def head(self, features: torch.Tensor) -> Any:
        """Do what this family does with its features."""
        raise NotImplementedError


def constant(*values: float) -> torch.Tensor:
    """Give one number for each channel."""
    return torch.tensor(values).view(1, -1, 1, 1)


class Family:
    """What a planted module looks like from outside: as LibreYOLO's families do."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.device = torch.device("cpu")

    def _forward(self, images: torch.Tensor) -> Any:
        return self.model(images)
