from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from conftest import built, probe, same_bits

from samebits_reference import cells, families, season
from samebits_reference.families import Order, flatten
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import ProblemError


def test_the_table_has_every_cell() -> None:
    assert len(cells.CELLS) == 47
    assert len({(cell.family, cell.task) for cell in cells.CELLS}) == 47
    assert len({cell.family for cell in cells.CELLS}) == 39
    assert len({cell.task for cell in cells.CELLS}) == 9
    assert len({(cell.family, cell.task) for cell in cells.ALL}) == len(cells.ALL)
    assert {cell.group for cell in cells.CELLS} == {cells.MATRIX}
    for cell in cells.ALL:
        assert not cells.check_shape(cell, cell.imgsz, 1), cell
        assert not cells.check_shape(cell, cell.native, 1), cell
        assert all(other in {known.family for known in cells.ALL} for other, _ in cell.others), cell


def test_the_table_prints_as_json_without_torch() -> None:
    code = "import sys, samebits_reference.cells as c; print(c.json_lines()); assert 'torch' not in sys.modules"
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(cells.ALL)
    assert sum(row["group"] == "matrix" for row in rows) == 47
    assert rows[0]["path"] == "libreyolo.models.yolo1.model.LibreYOLO1"
    cannot = {row["family"] for row in rows if row["unpredictable"] and row["group"] != "planted"}
    assert cannot == {"sam", "sensenova", "sensenova@wide", "sensenova@two", "l2cs", "domedetr"}
    assert all(row["unpredictable"] for row in rows if row["group"] == "planted")


@pytest.mark.parametrize(
    ("order", "reasons"),
    [
        (Order("yolo99"), {"UNKNOWN_FAMILY"}),
        (Order("resnet", task="detect"), {"UNKNOWN_TASK"}),
        (Order("resnet", size="19"), {"UNKNOWN_SIZE"}),
        (Order("yolo9", precision="fp8"), {"UNKNOWN_PRECISION"}),
        (Order("yolo9", imgsz=100), {"BAD_IMAGE_SIZE"}),
        (Order("yolo9", imgsz=-32), {"BAD_IMAGE_SIZE"}),
        (Order("yolo1", imgsz=416), {"BAD_IMAGE_SIZE"}),
        (Order("resnet", imgsz=10**9), {"BAD_IMAGE_SIZE"}),
        (Order("resnet", batch=-1), {"BAD_BATCH"}),
        (Order("yolo9", size="q", imgsz=33, batch=10**6), {"UNKNOWN_SIZE", "BAD_IMAGE_SIZE", "BAD_BATCH"}),
        (Order("resnet", device="tpu"), {"UNKNOWN_DEVICE"}),
        (Order("resnet", device="cuda:x"), {"UNKNOWN_DEVICE"}),
    ],
)
def test_bad_orders_are_refused(order: Order, reasons: set[str]) -> None:
    with pytest.raises(ProblemError) as refusal:
        families.build(order)
    assert {problem.reason for problem in refusal.value.problems} == reasons


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is here")
def test_cuda_is_refused_where_there_is_none() -> None:
    with pytest.raises(ProblemError, match="NO_CUDA"):
        families.build(Order("resnet", device="cuda:0"))


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ProblemError, match="NO_SUCH_DEVICE"):
        families.build(Order("resnet", device="cuda:99"))


def test_names_left_open_are_filled_in() -> None:
    order = built("yolo9").order
    assert (order.size, order.task, order.device) == ("t", "detect", "cpu")


def test_outputs_are_flattened_by_sorted_keys_and_positions() -> None:
    a, b, c = torch.zeros(1), torch.ones(1), torch.ones(2)
    nested = {"z": [a, (None, b)], "a": {"features": c, "note": "text"}}
    assert [name for name, _ in flatten(nested)] == ["a.features", "z.0", "z.1.1"]
    assert [name for name, _ in flatten(a)] == ["output"]
    assert [name for name, _ in flatten((a, b))] == ["0", "1"]


# Digests of seasoned weights: they must be the same on every machine.
WEIGHTS = {
    ("resnet", "conv1.weight"): "3160141d8ce8248bea53781c83f3af5d6d30ebe4e7ce4c2d8287ac37a85ddfd9",
    ("resnet", "layer4.1.bn2.running_var"): "7f3eed8fa8416323d0cc1bf1d4fef1a1330c801bd11dee5972290e632a54708a",
    ("yolo9", "backbone.conv0.conv.weight"): "8383377ac69f2017f414443db6b50093ede1a31b0361ab9da42451deba76f797",
    ("yolo9", "head.cv3.2.2.bias"): "15a42610df1d62cf6e27fae858819cc9a182e5411124c13ebda291a85d3929c8",
}


@pytest.mark.parametrize(("family", "name"), WEIGHTS)
def test_seasoned_weights_are_the_same_on_every_machine(family: str, name: str) -> None:
    assert digest_tensor(built(family).weights()[name]) == WEIGHTS[family, name]


def test_the_seed_decides_the_weights() -> None:
    one, two, other = (families.build(Order("resnet", imgsz=64, seed=seed)).weights() for seed in (7, 7, 8))
    assert all(same_bits(tensor, two[name]) for name, tensor in one.items())
    assert not same_bits(one["conv1.weight"], other["conv1.weight"])
    assert not same_bits(one["bn1.running_mean"], other["bn1.running_mean"])


def test_fresh_weights_are_left_alone() -> None:
    fresh = families.build(Order("resnet", imgsz=64, fresh_weights=True))
    assert fresh.seasoning == season.FRESH
    assert fresh.weights()["bn1.running_var"].eq(1).all()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("family", ["resnet", "yolo9"])
def test_seasoning_lets_every_output_see_the_input(family: str, precision: str) -> None:
    of = built(family, precision)
    image = probe(of, 5)
    outputs = list(flatten(of.step(image)))
    twins = dict(flatten(of.step(image * 0.5 + 0.25)))
    assert outputs
    for name, tensor in outputs:
        values, twin = tensor.float(), twins[name].float()
        assert values.isfinite().all(), name
        assert 0.3 < values.std() < 100, name  # neither vanished nor about to overflow
        assert (values != twin).float().mean() > 0.5, name


def test_double_precision_keeps_the_weights_as_they_were() -> None:
    double = built("resnet", "fp64")
    single = built("resnet").weights()
    assert next(double.module.parameters()).dtype == torch.float64
    assert all(same_bits(tensor, single[name]) for name, tensor in double.weights().items())
    (_, output), (_, reference) = *flatten(double.step(probe(double, 1))), *flatten(built("resnet").step(probe(double, 1)))
    assert output.dtype == torch.float64
    assert (output - reference).abs().max() < 1e-4
    assert (output - reference).abs().max() > 0


def test_devices_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    names = ("", "cpu", "cuda", "cuda:0", "cuda:1")
    assert [str(families.named_device(name)) for name in names] == ["cpu", "cpu", "cuda:0", "cuda:0", "cuda:1"]
    with pytest.raises(ProblemError, match=r"NO_SUCH_DEVICE: there is no CUDA device 2 \(there are 2\)"):
        families.named_device("cuda:2")
    for name in ("cuda:-1", "cuda:x", "gpu", "cpu:0"):
        with pytest.raises(ProblemError, match="UNKNOWN_DEVICE"):
            families.named_device(name)


def test_what_a_family_keeps_beside_its_module_goes_to_the_device() -> None:
    order = Order("resnet", device="meta")
    family = types.SimpleNamespace(model=torch.nn.Linear(2, 2), texts=torch.ones(2), names=["a"], _forward=None)
    made = families.Constructed(order, cells.find("resnet", ""), order, family, season.FRESH)
    of = families.build(order, made)
    assert of.module is family.model
    assert (family.device, of.device) == (torch.device("meta"), torch.device("meta"))
    assert [tensor.device.type for tensor in (family.texts, of.module.weight)] == ["meta", "meta"]
    assert family.names == ["a"]


def test_what_was_constructed_of_another_order_is_not_built() -> None:
    other = families.construct(Order("resnet", imgsz=64, seed=8))
    of = families.build(Order("resnet", imgsz=64), other)
    assert of.order.seed == 0
    assert same_bits(of.weights()["conv1.weight"], built("resnet").weights()["conv1.weight"])


class Parts(torch.nn.Module):
    """Something of all that seasoning tells apart."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.plain, self.biased = nn.Conv2d(2, 4, 3, bias=False), nn.Linear(8, 4)
        self.one, self.turned = nn.Linear(8, 1), nn.ConvTranspose2d(4, 2, 2, groups=2, bias=False)
        self.statistics, self.layer = nn.BatchNorm2d(3), nn.LayerNorm(3)
        self.attention, self.table = nn.MultiheadAttention(4, 2), nn.Embedding(5, 2)
        self.temperature, self.token = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.rand(1, 4))
        self.gain, self.less = nn.Parameter(torch.full((4,), 1e-6)), nn.Parameter(torch.full((4,), -1.0))
        self.fixed, self.number = nn.Parameter(torch.rand(3), requires_grad=False), nn.Parameter(torch.ones(2))
        self.register_buffer("anchors", torch.rand(4))


@torch.no_grad()
def test_ranges_that_weights_are_drawn_from() -> None:
    parts = Parts()
    names = {tensor: name for name, tensor in (*parts.named_parameters(), *parts.named_buffers())}
    ranges = {
        names[tensor]: (round(low, 4), round(high, 4))
        for part in parts.modules()
        for tensor, low, high in season._ranges(part, 1.0)
    }
    reach = {
        "plain.weight": round((3 * 2.1 / 18) ** 0.5, 4),
        "biased.weight": round((3 * 0.5 / 8) ** 0.5, 4),
        "turned.weight": round((3 * 2.1 / 8) ** 0.5, 4),  # 4 / 2 inputs of 2 by 2
        "attention.in_proj_weight": round((3 * 0.5 / 4) ** 0.5, 4),
        "attention.out_proj.weight": round((3 * 0.5 / 4) ** 0.5, 4),
        "biased.bias": 0.5,
        "attention.in_proj_bias": 0.5,
        "attention.out_proj.bias": 0.5,
        "statistics.bias": 2.0,
        "statistics.running_mean": 0.5,
        "layer.bias": 0.5,
        "table.weight": 0.5,
        "token": 0.5,
    }
    assert ranges == {name: (-far, far) for name, far in reach.items()} | {
        "one.weight": (0.0, round((3 * 0.5 / 8) ** 0.5, 4)),
        "one.bias": (0.0, 0.5),
        "statistics.weight": (0.5, 1.5),
        "statistics.running_var": (0.5, 2.0),
        "layer.weight": (0.5, 1.5),
        "gain": (0.5, 1.0),
        "less": (-1.0, -0.5),
        "number": (0.5, 1.0),
    }
    assert [(low, high) for _, low, high in season._ranges(parts.layer, 0.5)] == [(0.25, 0.75), (-0.25, 0.25)]


def test_numbers_are_drawn_in_the_order_of_rows() -> None:
    draws = [season._Draw(3) for _ in range(2)]
    rows, columns = torch.zeros(300, 400), torch.zeros(400, 300).t()
    for draw, tensor in zip(draws, (rows, columns), strict=True):
        draw.fill(tensor, -0.25, 0.5)
    assert not columns.is_contiguous()
    assert torch.equal(rows, columns)
    assert -0.25 < float(rows.min()) < -0.2499
    assert 0.4999 < float(rows.max()) < 0.5
    assert abs(float(rows.mean()) - 0.125) < 0.01


def test_tied_weights_are_drawn_once() -> None:
    one, tied = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3))), torch.nn.Sequential()
    first, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    second = torch.nn.Linear(3, 3)
    second.weight, second.bias = first.weight, first.bias
    tied.extend((first, second, last))
    assert season.season(one, "resnet", 5) == season.season(tied, "resnet", 5)
    assert torch.equal(tied[0].weight, one[0].weight)
    assert torch.equal(tied[2].weight, one[1].weight)


def test_words_say_what_is_damped_and_shifted() -> None:
    assert season.words("clip").endswith("summed branches damped: none")
    assert season.words("resnet").endswith(r"summed branches damped: layer\d+\.\d+\.bn[23]$ 0.5")
    assert season.words("depth_anything3").endswith(r"; bias of sky_output_conv2\.2$ -0.6..-0.1")
