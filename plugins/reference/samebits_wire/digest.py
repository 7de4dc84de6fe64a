"""Names tensors by BLAKE3-256: a header with dtype and sizes, then the raw bytes in row-major order."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blake3 import blake3

if TYPE_CHECKING:
    import torch

    Buffer = bytes | bytearray | memoryview | ctypes.Array[ctypes.c_char]


def header(dtype: str, sizes: Sequence[int]) -> bytes:
    """Give what stands before the bytes: "float32 1,3,640,640\\n", "float32 \\n" for a scalar."""
    return f"{dtype} {','.join(str(size) for size in sizes)}\n".encode("ascii")


def digest_bytes(data: Buffer) -> str:
    """Name plain bytes: a recording, a weights file."""
    return blake3(data).hexdigest()


def digest_raw(dtype: str, sizes: Sequence[int], data: Buffer) -> str:
    """Name a tensor by its dtype, its sizes and its little-endian bytes in row-major order."""
    hasher = blake3(header(dtype, sizes))
    hasher.update(data)
    return hasher.hexdigest()


def digest_tensor(tensor: torch.Tensor) -> str:
    """Name a tensor of any device and any strides."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    length = plain.numel() * plain.element_size()
    # ctypes reads any dtype, bfloat16 too, without numpy.
    data = memoryview((ctypes.c_char * length).from_address(plain.data_ptr())).cast("B") if length else b""
    return digest_raw(str(plain.dtype).removeprefix("torch."), plain.shape, data)
