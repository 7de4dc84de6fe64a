"""Cells beyond resnet and yolo9 on the CPU, at the smallest images they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import probe, same_bits, take
from interpreter import Interpreter

from samebits_reference import cells, families, recorder
from samebits_reference.families import Built, Order, flatten
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import ProblemError

QUICK = [
    ("yolo2", "detect", 64),
    ("yolox", "detect", 64),
    ("picodet", "detect", 64),
    ("fomo", "point", 48),
    ("mobilenetv4", "classify", 64),
    ("segformer", "semantic", 64),
    ("zipdepth", "depth", 64),
    ("sensenova@two", "embed", 14),
]
SLOW = [
    ("yolo1", "detect", 448),
    ("yolo3", "detect", 128),
    ("yolo4", "detect", 128),
    ("yolo7", "detect", 128),
    ("yolo9_p2", "detect", 128),
    ("yolo9_e2e", "detect", 128),
    ("yolonas", "detect", 128),
    ("yolonas", "pose", 128),
    ("rtmdet", "detect", 128),
    ("rtmdet", "segment", 128),
    ("dfine", "detect", 320),
    ("dfine", "segment", 320),
    ("deim", "detect", 320),
    ("deimv2", "detect", 320),
    ("rtdetr", "detect", 128),
    ("rtdetrv2", "detect", 128),
    ("rtdetrv4", "detect", 128),
    ("rfdetr", "detect", 128),
    ("rfdetr", "segment", 144),
    ("rfdetr", "pose", 144),
    ("ec", "detect", 128),
    ("ec", "segment", 128),
    ("ec", "pose", 128),
    ("convnext", "classify", 64),
    ("efficientnetv2", "classify", 64),
    ("clip", "classify", 224),
    ("siglip2", "classify", 256),
    ("dinov2", "classify", 112),
    ("dinov2", "semantic", 112),
    ("pidnet", "semantic", 128),
    ("lingbotvision", "semantic", 128),
    ("depth_anything", "depth", 112),
    ("nafnet", "restore", 128),
    ("realesrgan", "restore", 64),
    ("swinir", "restore", 64),
    ("birefnet", "matte", 64),
    ("birefnet@whole", "matte", 64),
    ("ppocr", "ocr", 64),
    ("sam", "embed", 1024),
    ("sensenova", "embed", 14),
    ("sensenova@wide", "embed", 14),
    ("depth_anything3", "depth", 56),
]
# What runs on the CPU of the two: deform_conv2d has neither, and realesrgan takes minutes in fp16.
HALF = {"birefnet@whole": (), "realesrgan": ("bf16",)}


def build(family: str, **order: object) -> Built:
    try:
        return families.build(Order(family, **order))  # type: ignore[arg-type]
    except ProblemError as error:
        if error.problems[0].reason == "FAMILY_UNAVAILABLE":
            pytest.skip(str(error))
        raise


def check(family: str, task: str, imgsz: int) -> None:
    """Record on one probe, replay by the independent interpreter on another, and look that bf16 sees the input."""
    of = build(family, task=task, imgsz=imgsz)
    of.step(probe(of, 0))
    taken = take(of, probe(of, 1))
    images = probe(of, 2) * 0.5 + 0.25
    assert take(of, images).data == taken.data
    eager = dict(flatten(of.step(images.clone())))
    replayed = Interpreter(taken.data, taken.weights).run(images, *of.keys.values())
    for name, tensor in eager.items():
        assert same_bits(replayed[name], tensor), name
    for precision in HALF.get(family, ("bf16", "fp16")):
        look(families.build(Order(family, task=task, imgsz=imgsz, precision=precision)))


def look(half: Built) -> None:
    """See that outputs are finite and depend on the input, in a precision of little range or few digits."""
    one, other = dict(flatten(half.step(probe(half, 3)))), dict(flatten(half.step(probe(half, 3) * 0.5 + 0.25)))
    assert all(tensor.isfinite().all() for tensor in one.values() if tensor.is_floating_point())
    assert any((tensor != other[name]).float().mean() > 0.5 for name, tensor in one.items())


@pytest.mark.parametrize(("family", "task", "imgsz"), QUICK)
def test_quick_cells_record_and_replay(family: str, task: str, imgsz: int) -> None:
    check(family, task, imgsz)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "task", "imgsz"), SLOW)
def test_slow_cells_record_and_replay(family: str, task: str, imgsz: int) -> None:
    check(family, task, imgsz)


@pytest.mark.slow
def test_eomt_reads_a_buffer_on_the_host() -> None:
    """Its schedule of attention masks stays on the CPU (LibreEoMTNet._apply): what is read there is a constant."""
    check("eomt", "semantic", 512)
    of = families.build(Order("eomt"))
    of.step(probe(of, 0))
    settings = {setting.key: setting.value for setting in take(of, probe(of, 1)).recording.header.profile_settings}
    assert settings["host.eomt.attn_mask_probs"] == digest_tensor(of.weights()["eomt.attn_mask_probs"])


@pytest.mark.slow
@pytest.mark.parametrize("cell", cells.ALL, ids=lambda cell: f"{cell.family}-{cell.task}")
def test_every_cell_at_its_native_size_with_three_images(cell: cells.Cell) -> None:
    of = build(cell.family, task=cell.task, imgsz=cell.native, batch=3)
    of.step(probe(of, 0))
    if cell.group == cells.BEYOND:
        with pytest.raises(ProblemError, match="DYNAMIC_OPERATION"):
            take(of, probe(of, 1))
        return
    taken = take(of, probe(of, 1))
    assert take(of, probe(of, 2) * 0.5 + 0.25).data == taken.data
    assert taken.recording.header.batch == 3
    assert all(tensor.isfinite().all() for _, tensor in taken.outputs if tensor.is_floating_point())


REFUSED = {
    "l2cs": ("Tensor.numpy reads what an input reaches on the host", "libreyolo/utils/image_loader.py"),
    "domedetr": ("aten::nonzero gives sizes that depend on data", "libreyolo/models/domedetr/mwas.py"),
}


@pytest.mark.parametrize("family", ["l2cs", pytest.param("domedetr", marks=pytest.mark.slow)])
def test_the_recorder_finds_why_a_family_cannot_be_captured(family: str) -> None:
    of = families.build(Order(family))
    of.step(probe(of, 0))
    with pytest.raises(ProblemError) as refusal:
        take(of, probe(of, 1))
    what, where = REFUSED[family]
    problem = next(problem for problem in refusal.value.problems if problem.summary == what)
    assert problem.reason == "DYNAMIC_OPERATION"
    assert problem.path.startswith("operations[")
    assert where in problem.detail
    assert family not in Path(recorder.__file__).read_text()
