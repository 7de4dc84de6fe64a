"""Families that are not of LibreYOLO: docs/families.md says what such a class needs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import HostMemory, probe, take
from predicting import Host, picture

from samebits_reference import cells, families
from samebits_reference.cells import Cell
from samebits_reference.families import Order
from samebits_wire.problems import ProblemError

ROOT = Path(__file__).parents[3]


def documented() -> str:
    """Give the module of the documentation's example."""
    text = (ROOT / "docs" / "families.md").read_text()
    return text.partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = documented() + "\n\nclass Empty:\n    def __init__(self, **_): self.model = 'none'\n"
    source += "\n\nclass Sized(Empty):\n    INPUT_SIZES = {'s': 64}\n"
    source += "\n\nfrom libreyolo.models.resnet.model import LibreResNet\n\nclass Own(LibreResNet):\n    pass\n"
    (tmp_path / "custom_for_a_test.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))

    def cell(task: str, family: str, classname: str, module: str = "custom_for_a_test") -> Cell:
        return Cell(task, family, classname, "s", 64, 64, 8, group=cells.CUSTOM, module=module)

    rows = (
        cell("classify", "tinynet", "TinyNet"), cell("semantic", "tinynet", "TinyNet"),
        cell("classify", "no-module", "TinyNet", "not_there"), cell("classify", "no-class", "Tinier"),
        cell("classify", "no-sizes", "Empty"), cell("classify", "no-family", "Sized"),
        dataclasses.replace(cell("classify", "own", "Own"), size="18", predicts=True), cell("classify", "own-silent", "Own"),
        dataclasses.replace(cell("classify", "tinynet-claims", "TinyNet"), predicts=True),
    )  # fmt: skip
    monkeypatch.setattr(cells, "ALL", cells.ALL + rows)


@pytest.mark.parametrize(("task", "shape"), [("classify", (2, 10)), ("semantic", (2, 10, 48, 48))])
@pytest.mark.parametrize("size", ["s", "m"])
@pytest.mark.usefixtures("table")
def test_it_records_like_any_other(task: str, shape: tuple[int, ...], size: str) -> None:
    of = families.build(Order("tinynet", size=size, task=task, imgsz=96, batch=2))
    of.step(probe(of, 0))
    taken = take(of, probe(of, 1))
    assert take(of, probe(of, 2) * 0.5 + 0.25).data == taken.data
    assert [tensor.shape for _, tensor in taken.outputs] == [shape]


@pytest.mark.parametrize(
    ("family", "says"),
    [
        ("no-module", ["no-module cannot be imported: No module named 'not_there'"]),
        ("no-class", ["no-class cannot be imported: custom_for_a_test has no Tinier"]),
        ("no-sizes", ["Empty has no INPUT_SIZES: sizes, each with the image size it was made for"]),
        (
            "no-family",
            [
                "Sized has no attribute model that is a torch.nn.Module",
                "Sized has no method _forward, which takes images",
            ],
        ),
    ],
)
@pytest.mark.usefixtures("table")
def test_it_says_what_a_class_lacks(family: str, says: list[str]) -> None:
    with pytest.raises(ProblemError) as refusal:
        families.build(Order(family))
    assert [problem.summary for problem in refusal.value.problems] == says
    assert {problem.reason for problem in refusal.value.problems} == {"FAMILY_UNAVAILABLE"}


@pytest.mark.usefixtures("table")
def test_it_predicts_if_its_row_says_so(tmp_path: Path) -> None:
    says = {name: cells.unpredictable(cells.find(name, "")) for name in ("own", "own-silent", "tinynet", "tinynet-claims")}
    assert [name for name, why in says.items() if not why] == ["own", "tinynet-claims"]
    source = picture(tmp_path / "a.png", 60, 50)
    memory = HostMemory(2 << 30)
    try:
        (of_libreyolo,) = Host(memory, family="resnet", imgsz=64).predict(source, imgsz=64)["results"]
        (own,) = Host(memory, family="own", imgsz=64).predict(source, imgsz=64)["results"]
        assert len(own["answer"]["top5"]) == len(of_libreyolo["answer"]["top5"]) == 5
        with pytest.raises(ProblemError, match=r"NOT_PREDICTABLE.*TinyNet has no method predict"):
            Host(memory, family="tinynet-claims", imgsz=64).begin("1", [source])
    finally:
        memory.close()
