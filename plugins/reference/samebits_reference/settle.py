"""Settles which kernels MKL's vector functions use, before several threads ask for the first time at once.

PyTorch gives parts of large CPU tensors to threads, and each calls MKL for its part. MKL 2024.2, which torch 2.11 holds,
looks for a function's kernel when it is first called. If threads do that together, one of them may compute its part in
MKL's least accurate mode, once: half of the 24 bits of a result (github.com/pytorch/pytorch/issues/188792). A family that
computes positions with `sin` while it is constructed would have other constants in that process, and in none after it.
"""

from __future__ import annotations

import torch

# Those of ATen/cpu/vml.h, under PyTorch's names; each exists for float32 and float64, and 16 bits go through float32.
FUNCTIONS = (
    "acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp", "log", "log10", "log2", "sin", "sqrt", "tan", "tanh",
    "trunc",
)  # fmt: skip


def settle() -> None:
    """Call every function once, on this thread alone. What is forked later has what was found."""
    for dtype in (torch.float32, torch.float64):
        few = torch.full((16,), 0.5, dtype=dtype)  # far less than what is given to several threads
        for name in FUNCTIONS:
            getattr(torch, name)(few)
