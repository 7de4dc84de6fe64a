"""Section B: random numbers."""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.nn import functional

from samebits_reference.planted.body import Planted


class _Dropout(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        return functional.dropout(features, 0.5, training=not self.twin)


def c19_dropout(twin: bool) -> nn.Module:
    """Drop features while it predicts. Twin: it does not."""
    return _Dropout(twin)


class _Noise(Planted):
    """Adds seeded noise."""

    noise: torch.Tensor

    def __init__(self, twin: bool, host: bool) -> None:
        super().__init__(twin)
        self.host = host
        noise = torch.rand(1, 4, 1, 1, generator=torch.Generator().manual_seed(7))
        self.register_buffer("noise", noise)

    def head(self, features: torch.Tensor) -> torch.Tensor:
        if not self.twin and self.host:
            return features + self.noise * random.random()
        if not self.twin:
            torch.manual_seed(7)  # for whoever draws next
        return features + self.noise


def c21_reseeded(twin: bool) -> nn.Module:
    """Seed the generator in every step. Twin: it leaves it alone."""
    return _Noise(twin, host=False)


def c21_host_draw(twin: bool) -> nn.Module:
    """Draw a number on the host in every step. Twin: its noise was drawn once."""
    return _Noise(twin, host=True)


class _OwnGenerator(Planted):
    def __init__(self, twin: bool) -> None:
        super().__init__(twin)
        self.generator = random.Random(7)

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features if not self.twin and self.generator.random() < 1e-6 else features + 1.0


def c21_own_generator(twin: bool) -> nn.Module:
    """Leave an operation out once in a million steps, as a generator of its own says. Twin: never."""
    return _OwnGenerator(twin)


class _AttentionDropout(Planted):
    def head(self, features: torch.Tensor) -> torch.Tensor:
        tokens = features.flatten(2).transpose(1, 2)
        return functional.scaled_dot_product_attention(tokens, tokens, tokens, dropout_p=0.0 if self.twin else 0.1)


def c22_attention_dropout(twin: bool) -> nn.Module:
    """Attend with dropout. Twin: without."""
    return _AttentionDropout(twin)
