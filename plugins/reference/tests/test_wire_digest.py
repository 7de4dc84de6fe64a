from __future__ import annotations

import struct

import pytest
from blake3 import blake3

from samebits_wire.digest import digest_bytes, digest_raw, digest_tensor, header


@pytest.mark.parametrize(
    ("dtype", "sizes", "want"),
    [
        ("float32", [1, 3, 640, 640], b"float32 1,3,640,640\n"),
        ("float32", [], b"float32 \n"),
        ("bool", [0], b"bool 0\n"),
    ],
)
def test_header(dtype: str, sizes: list[int], want: bytes) -> None:
    assert header(dtype, sizes) == want


def test_plain_bytes() -> None:
    # the first vector of BLAKE3's own test file
    assert digest_bytes(b"") == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


def test_digest_is_that_of_header_and_bytes() -> None:
    data = struct.pack("<3f", 1, 2, 3)
    assert digest_raw("float32", [3], data) == blake3(b"float32 3\n" + data).hexdigest()


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    plain = torch.arange(6, dtype=torch.float32).view(2, 3)
    want = digest_raw("float32", [2, 3], struct.pack("<6f", *range(6)))
    assert digest_tensor(plain) == want
    assert digest_tensor(plain.t().contiguous().t()) == want  # strides do not count
    assert digest_tensor(plain.view(3, 2)) != want  # sizes do
    assert digest_tensor(plain.view(torch.int32)) != want  # the dtype does
    assert digest_tensor(torch.tensor(1.5, dtype=torch.bfloat16)) == digest_raw("bfloat16", [], b"\xc0\x3f")
    assert digest_tensor(torch.empty(0, 4, dtype=torch.int64)) == digest_raw("int64", [0, 4], b"")
    assert digest_tensor(torch.tensor([-0.0])) != digest_tensor(torch.tensor([0.0]))
    assert digest_tensor(plain.clone().requires_grad_()) == want
