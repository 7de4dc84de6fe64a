"""Cells beyond resnet and yolo9 on the CPU, at the smallest images they take.

Not tried anywhere yet: depth_anything3 (334 M parameters).
"""

from __future__ import annotations

import pytest
from conftest import probe, same_bits, take
from interpreter import Interpreter

from samebits_reference import families
from samebits_reference.families import Order, flatten
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
]
CPU_LACKS_BF16 = {"birefnet"}  # deform_conv2d


def check(family: str, task: str, imgsz: int) -> None:
    """Record on one probe, replay by the independent interpreter on another, and look that bf16 sees the input."""
    try:
        of = families.build(Order(family, task=task, imgsz=imgsz))
    except ProblemError as error:
        if error.problems[0].reason == "FAMILY_UNAVAILABLE":
            pytest.skip(str(error))
        raise
    of.step(probe(of, 0))
    taken = take(of, probe(of, 1))
    images = probe(of, 2) * 0.5 + 0.25
    assert take(of, images).data == taken.data
    eager = dict(flatten(of.step(images.clone())))
    replayed = Interpreter(taken.data, taken.weights).run(images)
    for name, tensor in eager.items():
        assert same_bits(replayed[name], tensor), name
    half = families.build(Order(family, task=task, imgsz=imgsz, precision="fp32" if family in CPU_LACKS_BF16 else "bf16"))
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
