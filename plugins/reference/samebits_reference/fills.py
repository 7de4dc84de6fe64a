"""Contents of tensors for operation cases, made from bits so that every language makes the same (goldens/ops/README.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

Words = npt.NDArray[np.uint64]

# By dtype: bits of the mantissa, bias of the exponent, bits in all.
_FORMATS = {"float32": (23, 127, 32), "bfloat16": (7, 127, 16), "float16": (10, 15, 16)}


def mix(seed: int, count: int) -> Words:
    """Give splitmix64's hash of seed * 2^32 + i for i below count."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64(((seed << 32) + 0x9E3779B97F4A7C15) % (1 << 64))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fill(dtype: str, kind: str, seed: int, count: int) -> torch.Tensor:
    """Give a flat tensor of count elements."""
    if dtype in ("int64", "int32", "uint8", "bool"):
        numbers = torch.from_numpy((mix(seed, count) >> np.uint64(32)).astype(np.int64))
        return _integers(dtype, kind, numbers).to(getattr(torch, dtype))
    words = _words(dtype, kind, seed, count)
    if dtype == "float32":
        plain = torch.from_numpy(words.astype(np.uint32).view(np.int32))
    else:
        plain = torch.from_numpy(words.astype(np.uint16).view(np.int16))
    return plain.view(getattr(torch, dtype))


def _integers(dtype: str, kind: str, numbers: torch.Tensor) -> torch.Tensor:
    name, _, bound = kind.partition(" ")
    if kind == "small":
        return numbers % 7
    if name == "below" and bound.isdigit():
        return numbers % int(bound)
    if name == "around" and bound.isdigit():
        return numbers % (2 * int(bound)) - int(bound)
    raise ValueError(f"no fill of {dtype} is called {kind!r}")


def _words(dtype: str, kind: str, seed: int, count: int) -> Words:
    mantissa, bias, width = _FORMATS[dtype]
    if kind == "quarters":
        return _cycle([0x3F7FC000, 0x407FF000, 0x3E7F0000, 0x417FFC00], 1, count)
    if kind in ("edges", "finite"):
        table = edges(dtype, finite=kind == "finite")
        return _cycle(table, len(table) ** seed, count)
    h = mix(seed, count)
    if kind == "bits":
        return h & np.uint64((1 << width) - 1)
    span, low = {"wide": (25, 12), "unit": (7, 6), "ties": (3, 1)}.get(kind, (7, 3))
    exponent = (h >> np.uint64(32)) % np.uint64(span) + np.uint64(bias - low)
    sign = h >> np.uint64(63) if kind != "positive" else np.zeros_like(h)
    if kind not in ("spread", "wide", "unit", "positive", "ties"):
        raise ValueError(f"no fill is called {kind!r}")
    lowest = 1 << (mantissa - 2) if kind == "ties" else 1
    low_bits = h & np.uint64((1 << mantissa) - lowest)
    return sign << np.uint64(width - 1) | exponent << np.uint64(mantissa) | low_bits


def edges(dtype: str, *, finite: bool) -> list[int]:
    """Give the bits of the numbers at which arithmetic goes wrong, each with both signs."""
    mantissa, bias, width = _FORMATS[dtype]
    one, half = bias << mantissa, 1 << (mantissa - 1)
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    table = [0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, one | half, (bias + 1) << mantissa | half, infinity - 1]
    if not finite:
        table += [infinity, infinity | half]
    return [word | sign << (width - 1) for word in table for sign in (0, 1)]


def _cycle(table: Sequence[int], slowness: int, count: int) -> Words:
    index = np.arange(count, dtype=np.int64) // slowness % len(table)
    return np.array(table, dtype=np.uint64)[index]
