"""Where a step is a segment of a family's forward: the rest, on what the segment gave, is the whole."""

from __future__ import annotations

import pytest
import torch
from conftest import HostMemory, probe, same_bits

from samebits_reference import families
from samebits_reference.arms import EAGER, REST, WHOLE, ReferenceArm
from samebits_reference.families import Order, flatten
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import ProblemError

CELLS = [
    Order("sam", size="tiny"),
    Order("birefnet", imgsz=64),
    pytest.param(Order("ppocr", imgsz=64), marks=pytest.mark.slow),
    pytest.param(Order("depth_anything3", imgsz=56), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("order", CELLS, ids=lambda order: order.family)
def test_the_rest_behind_the_segment_is_the_whole(order: Order) -> None:
    of = families.build(order)
    images = probe(of, 1)
    whole = dict(flatten(of.whole(images)))
    made = [tensor for _, tensor in flatten(of.step(images))]
    rest = dict(flatten(of.rest(images, made)))
    assert rest.keys() == whole.keys()
    assert all(same_bits(tensor, whole[name]) for name, tensor in rest.items())
    other = dict(flatten(of.rest(images, [torch.rot90(tensor, 2, (-2, -1)) for tensor in made])))
    assert not all(same_bits(tensor, whole[name]) for name, tensor in other.items())


def test_a_variant_has_the_weights_of_its_family() -> None:
    one, other = (families.build(Order(name, imgsz=64)).weights() for name in ("birefnet", "birefnet@whole"))
    assert all(same_bits(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.slow
def test_the_sky_rule_draws_and_is_seeded() -> None:
    of = families.build(Order("depth_anything3", imgsz=56))
    images = probe(of, 1)
    _, sky = (tensor for _, tensor in flatten(of.step(images)))
    assert 10 < (sky < 0.3).sum() < sky.numel() - 10  # seasoning sees to it: with fewer on a side the rule does nothing
    made = [torch.rand(1, 1, 400, 400) + 1, (torch.arange(160000.0) / 160000 * 0.4).reshape(1, 1, 400, 400)]
    (_, once), (_, again) = (*flatten(of.rest(images, made)), *flatten(of.rest(images, made)))
    assert same_bits(once, again)
    (_, unseeded) = next(iter(flatten(of.family.model.finish_depth(*made))))
    assert not same_bits(once, unseeded)  # more than 100 000 pixels: a random part of them decides


class Opened:
    """An arm whose process has built a cell and prepared a bank on each side."""

    def __init__(self, host: HostMemory, arm: str, family: str, **order: object) -> None:
        self.host, self.arm = host, ReferenceArm()
        self.built = self.arm.build(wire.BuildRequest(arm=arm, device="cpu", family=family, **order), host.memory)
        self.inputs = host.bank(self.built.inputs)
        weights = host.region(self.built.weights_length)
        self.arm.export(wire.ExportRequest(what=wire.ExportRequest.WHAT_WEIGHTS, region=weights), host.memory)
        self.outputs = host.bank(self.arm.load(wire.LoadRequest(weights=weights), host.memory).outputs)
        self.arm.prepare(wire.PrepareRequest(inputs=[self.inputs], outputs=[self.outputs]), host.memory)

    def run(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        for place, given in zip(self.host.tensors(self.inputs), inputs, strict=True):
            place.copy_(given)
        self.arm.step(0, 0)
        return [tensor.clone() for tensor in self.host.tensors(self.outputs)]


def test_the_arms_of_a_seam(host: HostMemory) -> None:
    order = {"family": "sam", "size": "tiny"}
    segment, whole, rest = (Opened(host, arm, **order) for arm in (EAGER, WHOLE, REST))
    assert (segment.built.segment, segment.built.rest) == ("get_image_embeddings", True)
    assert [spec.name for spec in rest.built.inputs] == ["images", "output"]
    for seed in (1, 2, 1):
        images = torch.rand(1, 3, 256, 256, generator=torch.Generator().manual_seed(seed))
        expected = whole.run(images)
        made = rest.run(images, *segment.run(images))
        assert all(same_bits(given, want) for given, want in zip(made, expected, strict=True))
        assert expected


@pytest.mark.parametrize("arm", [WHOLE, REST])
def test_a_cell_without_a_seam_has_no_such_arm(host: HostMemory, arm: str) -> None:
    request = wire.BuildRequest(arm=arm, device="cpu", family="resnet", imgsz=64)
    with pytest.raises(ProblemError, match="NO_SEAM"):
        ReferenceArm().build(request, host.memory)
    request.mode = "train"
    with pytest.raises(ProblemError, match="does not train"):
        ReferenceArm().build(request, host.memory)
