"""Planted faults: the recorder sees those that it can see on the CPU, and nothing wrong with any twin."""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, named

from samebits_reference import cells, families, profile
from samebits_reference.arms import EAGER
from samebits_reference.families import Order
from samebits_reference.planted import table
from samebits_reference.predict_session import PredictSession
from samebits_wire.problems import ProblemError

# What the recorder itself refuses on the CPU. The suite finds the others: see docs/selftest.md.
REFUSED = {
    "c04-after-a-day": "OUTSIDE_WORLD",
    "c04-by-a-file": "OUTSIDE_WORLD",
    "c07-buffer-made-anew": "BUFFER_REPLACED_IN_REGION",
    "c11-statistics-moved": "WRITES_STATE",
    "c14-undefined-memory": "UNINITIALISED_MEMORY",
    "c17-kept-activation": "PY_SIDE_EFFECT",
    "c19-dropout": "RANDOM_OPERATION",
    "c21-reseeded": "RNG_STATE_IN_REGION",
    "c21-host-draw": "RNG_STATE_IN_REGION",
    "c21-own-generator": "PY_SIDE_EFFECT",
    "c22-attention-dropout": "RANDOM_OPERATION",
    "c26-same-memory": "WRITES_STATE",
    "c27-late-change": "PY_SIDE_EFFECT",
    "c27-late-global": "PY_SIDE_EFFECT",
    "c27-late-enclosed": "PY_SIDE_EFFECT",
    "c27-late-class": "PY_SIDE_EFFECT",
    "c27-late-iterator": "PY_SIDE_EFFECT",
    "c34-refilled-block": "WRITES_STATE",
    "c37-growing-workspace": "WRITES_STATE",
    "c49-left-over": "UNINITIALISED_MEMORY",
    "c52-input-written": "INPUT_MUTATED",
    "c54-kept-results": "PY_SIDE_EFFECT",
    "c72-other-thread": "UNSEEN_WORK",
    "c72-thread-reads": "UNSEEN_WORK",
    "c97-number": "DYNAMIC_OPERATION",
    "c97-mask": "DYNAMIC_OPERATION",
    "c97-branch": "DYNAMIC_OPERATION",
    "c97-nonzero": "DYNAMIC_OPERATION",
    "c97-list": "DYNAMIC_OPERATION",
    "c97-numpy": "DYNAMIC_OPERATION",
    "c97-made-tensor": "UNSEEN_WORK",
    "c97-unwatched": "UNSEEN_WORK",
    "c97-dlpack": "DYNAMIC_OPERATION",
    "c112-counting-hook": "PY_SIDE_EFFECT",
    "c112-piled-hooks": "PY_SIDE_EFFECT",
    "c116-metric": "PY_SIDE_EFFECT",
    "c116-in-an-object": "UNRECORDABLE",
}
# Their recordings differ, which the gate SAME-RECORDING says.
CHANGING = {
    "c04-first-steps",
    "c06-step-number",
    "c09-toggled-flag",
    "c16-switched-branch",
    "c42-swapped-layer",
    "c99-growing-view",
}


def record(family: str, host: HostMemory) -> list[bytes]:
    """As the suite does: an input twice, another one twice."""
    precision = "bf16" if family.startswith("c46") else "fp32"
    session = PredictSession(EAGER, profile.EXACT_1, families.build(Order(family, precision=precision)))
    bank = host.bank([spec.message() for spec in session.inputs])
    data = []
    for seed in (1, 1, 2, 2):
        (images,) = host.tensors(bank)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
        data.append(session.record(host.memory, bank, named()).data)
    return data


@pytest.mark.parametrize("cell", cells.FAULTS, ids=lambda cell: cell.family)
def test_the_recorder(cell: cells.Cell, host: HostMemory) -> None:
    if cell.family in REFUSED:
        with pytest.raises(ProblemError) as refusal:
            record(cell.family, host)
        assert refusal.value.problems[0].reason == REFUSED[cell.family], refusal.value.problems
        return
    data = record(cell.family, host)
    assert (len(set(data)) > 1) == (cell.family in CHANGING)


def test_every_function_is_in_the_table() -> None:
    for module, functions in table.FUNCTIONS.items():
        made = __import__(f"samebits_reference.planted.{module}", fromlist=["x"])
        public = {name for name in vars(made) if name.startswith("c") and name[1].isdigit()}
        assert public == set(functions)
