"""What modules of cases are written with: descriptions of inputs, and `case`, which adds one to the topic at hand."""

from __future__ import annotations

from typing import Any

import torch
from samebits_reference import opcases

FLOATS = ("float32", "bfloat16", "float16")
SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}

Argument = tuple[str, Any]
cases: list[dict[str, Any]] = []


def tensor(
    dtype: str,
    sizes: list[int],
    seed: int = 1,
    fill: str = "spread",
    strides: list[int] | None = None,
    offset: int = 0,
) -> dict[str, Any]:
    """Describe an input."""
    spec: dict[str, Any] = {"dtype": dtype, "sizes": sizes}
    if strides:
        spec["strides"] = strides
    if offset:
        spec["offset"] = offset
    return spec | {"fill": fill, "seed": seed}


def case(
    name: str,
    operation: str,
    arguments: list[Argument],
    exact: bool,
    results: list[Any] | None = None,
    writes: list[str] | None = None,
) -> None:
    """Add a case; results that are not given are those of the CPU, which cannot run the others."""
    only = {"cuda_only": True} if results else {}
    if results is None:
        made = opcases.Case("", name, operation, arguments, [])
        out, values = opcases.run(made, torch.device("cpu"))
        returned = {
            id(value): key
            for key, value in values.items()
            if isinstance(value, torch.Tensor)
        }
        results = [
            returned.get(id(result)) or opcases.geometry(result) for result in out
        ]
    if any(case["name"] == name for case in cases):
        raise ValueError(f"two cases are called {name}")
    cases.append(
        {
            "name": name,
            "operation": operation,
            "exact_on_host": exact,
            **only,
            "arguments": [list(argument) for argument in arguments],
            "results": results,
            **({"writes": writes} if writes else {}),
        }
    )
