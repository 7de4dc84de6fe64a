"""On a GPU: what is predicted with the step on an arm is what LibreYOLO's own predict gives under the same profile."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from conftest import HostMemory
from predicting import Host, picture

from samebits_reference import answers, families
from samebits_reference.arms import EAGER, GRAPH
from samebits_reference.families import Order

pytestmark = pytest.mark.gpu
CELLS = [
    (Order("resnet"), {}),
    (Order("yolo9", imgsz=640), {"conf": 0.01, "max_det": 50}),
    (Order("rtmdet", task="segment", imgsz=320), {"conf": 0.01, "max_det": 20}),
    (Order("segformer", imgsz=256), {}),
    (Order("zipdepth", imgsz=256), {}),
    (Order("nafnet", imgsz=64), {}),
    (Order("birefnet", imgsz=256), {}),
    (Order("depth_anything3", imgsz=56), {}),
]


@pytest.mark.parametrize("arm", [EAGER, GRAPH])
@pytest.mark.parametrize(("order", "options"), CELLS, ids=lambda value: value.family if isinstance(value, Order) else "")
def test_it_is_what_libreyolo_gives(
    order: Order, options: dict[str, Any], arm: str, host: HostMemory, tmp_path: pathlib.Path
) -> None:
    sources = [picture(tmp_path / "a.png", 320, 256), picture(tmp_path / "b.png", 256, 192, seed=1)]
    theirs = families.build(Order(order.family, task=order.task, imgsz=order.imgsz, device="cuda:0")).family
    form = answers.Form("rle")
    settings = options | ({"imgsz": order.imgsz} if order.imgsz else {})
    expected = [answers.answer(theirs.predict([source], **settings)[0], form, source, source.name) for source in sources]
    at = Host(host, arm, "cuda:0", family=order.family, task=order.task, imgsz=order.imgsz)
    given = [at.predict(source, masks="rle", **settings)["results"][0]["answer"] for source in sources]
    assert given == expected
    if order.family != "birefnet":  # of a matte without a file there is the coverage, and random weights cover all
        assert given[0] != given[1]
    assert torch.cuda.is_initialized()
    if arm == GRAPH:
        assert at.steps.stats().replays == len(at.shapes)


def test_half_precision_of_a_segment_and_what_comes_behind_it(host: HostMemory, tmp_path: pathlib.Path) -> None:
    source = picture(tmp_path / "a.png", 320, 256)
    order = {"family": "birefnet", "imgsz": 256, "precision": "bf16"}
    eager, graph = (
        Host(host, arm, "cuda:0", **order).predict(source, imgsz=256)["results"][0]["answer"] for arm in (EAGER, GRAPH)
    )
    assert eager == graph
    assert eager["matte"]["coverage"] is not None
