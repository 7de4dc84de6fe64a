"""MKL's vector functions are asked for on one thread before anything is computed on several."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from samebits_reference import __main__, first, settle, zygote


def test_they_are_the_functions_that_pytorch_calls() -> None:
    header = (Path(torch.__file__).parent / "include/ATen/cpu/vml.h").read_text()
    named = re.findall(r"^IMPLEMENT_VML_MKL\((\w+), \w+\)$", header, re.MULTILINE)
    assert sorted(settle.FUNCTIONS) == sorted(named)


class Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[tuple[str, torch.dtype]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in settle.FUNCTIONS:
            (asked,) = args
            assert asked.is_contiguous()  # others do not come to MKL
            assert asked.numel() < 2048  # from here on PyTorch takes a second thread
            self.seen[name, asked.dtype] += 1
        return func(*args, **(kwargs or {}))


def test_each_is_called_once_on_few_numbers() -> None:
    with Calls() as calls:
        settle.settle()
    assert calls.seen == Counter((name, dtype) for name in settle.FUNCTIONS for dtype in (torch.float32, torch.float64))


def test_every_way_to_start_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setenv("SAMEBITS_THREADS", "")
    for start in ("zygote", "plugin", "first"):
        monkeypatch.setattr(settle, "settle", lambda start=start: done.append(start))
        match start:
            case "zygote":
                zygote.prepare()
            case "plugin":
                __main__.make()
            case _:
                assert first.main(["--family", "none", "--weights", "none", "--images", "none"]) != 0
    assert done == ["zygote", "plugin", "first"]
