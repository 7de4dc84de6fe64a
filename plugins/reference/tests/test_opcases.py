from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from samebits_reference import fills, opcases

# In the repository, or in the bundle, where this folder is python/tests.
CASES = next(
    folder / "goldens" / "ops" / "cases" for folder in Path(__file__).parents[2:4] if (folder / "goldens" / "ops").is_dir()
)


def test_hash_is_splitmix64() -> None:
    # The first two numbers of splitmix64 from state 0.
    assert fills.mix(0, 1)[0] == 0xE220A8397B1DCDAF


@pytest.mark.parametrize(
    ("dtype", "kind", "seed", "want"),
    [  # the same numbers are in native/ops/fills_test.go
        ("float32", "spread", 1, [0xC0820138, 0x3F59956F, 0xC0507022, 0xC03CAF9B]),
        ("bfloat16", "wide", 2, [0xBBB2, 0xC2C9, 0xC0FF, 0xBFA7]),
        ("float32", "unit", 1, [0xBF020138, 0x3DD9956F, 0xBED07022, 0xBEBCAF9B]),
        ("float16", "positive", 3, [0x45FB, 0x3D82, 0x42DD, 0x4578]),
        ("float32", "bits", 4, [0x237557CF, 0x94418F03, 0x8D5A1DD7, 0xA1E35B7D]),
        ("float16", "edges", 1, [0x0, 0x0, 0x0, 0x0]),
        ("float32", "finite", 0, [0x0, 0x80000000, 0x1, 0x80000001]),
        ("float32", "ties", 7, [0xBF800000, 0x3F400000, 0xC0400000, 0xBFC00000]),
        ("float32", "quarters", 9, [0x3F7FC000, 0x407FF000, 0x3E7F0000, 0x417FFC00]),
    ],
)
def test_fills(dtype: str, kind: str, seed: int, want: list[int]) -> None:
    flat = fills.fill(dtype, kind, seed, len(want))
    words = flat.view(torch.int32 if dtype == "float32" else torch.int16)
    mask = 0xFFFFFFFF if dtype == "float32" else 0xFFFF
    assert [int(word) & mask for word in words] == want


def test_fills_of_integers() -> None:  # as in native/ops/fills_test.go
    assert fills.fill("int64", "small", 5, 4).tolist() == [1, 3, 1, 5]
    assert fills.fill("int64", "below 300", 5, 4).tolist() == [104, 243, 267, 143]
    assert fills.fill("int32", "around 40", 5, 4).tolist() == [4, -17, -33, 23]
    with pytest.raises(ValueError, match="int64"):
        fills.fill("int64", "spread", 5, 4)


def test_edges_cover_every_pair() -> None:
    first = fills.fill("float16", "edges", 0, 484).view(torch.int16).tolist()
    second = fills.fill("float16", "edges", 1, 484).view(torch.int16).tolist()
    assert len(set(zip(first, second, strict=True))) == 484


def test_unknown_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="sawtooth"):
        fills.fill("float32", "sawtooth", 0, 1)


def test_strided_input_lies_in_its_buffer() -> None:
    spec = {"dtype": "float32", "sizes": [2, 3], "strides": [8, 2], "offset": 5, "fill": "spread", "seed": 3}
    made = opcases.tensor(spec, torch.device("cpu"))
    buffer = fills.fill("float32", "spread", 3, 5 + 8 + 4 + 1)
    assert made.storage_offset() == 5
    assert made.untyped_storage().nbytes() == 4 * 18
    assert torch.equal(made, buffer.as_strided([2, 3], [8, 2], 5))


def write_cases(path: Path, *cases: dict[str, object]) -> None:
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"schema": 1, "cases": [\n{lines}\n]}}\n')


def relu(**changes: object) -> dict[str, object]:
    spec = {"dtype": "float32", "sizes": [2], "strides": [1]}
    given = {"dtype": "float32", "sizes": [2], "fill": "spread", "seed": 1}
    case: dict[str, object] = {
        "name": "relu",
        "operation": "aten::relu",
        "exact_on_host": True,
        "arguments": [["self", given]],
        "results": [spec],
    }
    return case | changes


def test_digests_are_written(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.json", relu())
    arguments = ["--cases", str(tmp_path / "cases.json"), "--output", str(tmp_path / "out.json"), "--device", "cpu"]
    assert opcases.main(arguments) == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["profile"] == "exact-1"
    assert written["environment"]["torch"] == torch.__version__
    line = (tmp_path / "cases.json").read_text().splitlines()[1]
    assert written["results"]["relu"]["case"] == opcases.digest_bytes(line.encode())
    x = fills.fill("float32", "spread", 1, 2)
    assert written["results"]["relu"]["results"] == [opcases.digest_tensor(torch.relu(x))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"results": [{"dtype": "float32", "sizes": [3], "strides": [1]}]}, "the case has"),
        ({"results": ["self"]}, "is not the argument self"),
        ({"results": []}, "1 results, the case has 0"),
        ({"arguments": [["input", 1]]}, "the schema has"),
    ],
)
def test_a_wrong_case_fails(
    changes: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "cases.json", relu(**changes))
    arguments = ["--cases", str(tmp_path / "cases.json"), "--output", str(tmp_path / "out.json"), "--device", "cpu"]
    assert opcases.main(arguments) == 1
    assert message in capsys.readouterr().err


def test_every_case_of_the_repository_is_read() -> None:
    names: set[str] = set()
    for file in CASES.glob("*.json"):
        cases = opcases.read(file)
        assert len(cases) == len(json.loads(file.read_text())["cases"])
        assert names.isdisjoint(case.name for case in cases)
        names |= {case.name for case in cases}
        for case in cases:
            assert opcases.operator(case.operation)._schema.name == case.operation.partition(".")[0]
    assert len(names) > 600


@pytest.mark.gpu
def test_every_case_runs_on_a_gpu(tmp_path: Path) -> None:
    arguments = ["--cases", str(CASES), "--output", str(tmp_path / "digests"), "--device", "cuda"]
    assert opcases.main(arguments) == 0
    for file in CASES.glob("*.json"):
        written = json.loads((tmp_path / "digests" / file.name).read_text())
        assert written["results"].keys() == {case.name for case in opcases.read(file)}


CPU = torch.device("cpu")


def test_arguments_are_what_the_file_says() -> None:
    assert opcases.decode(None, CPU) is None
    assert opcases.decode([1, [True, "mean"]], CPU) == [1, [True, "mean"]]
    assert opcases.decode({"as": "bfloat16"}, CPU) is torch.bfloat16
    assert str(opcases.decode({"real": "-inf"}, CPU)) == "-inf"
    assert opcases.decode({"memory_format": "channels_last"}, CPU) is torch.channels_last
    (made,) = opcases.decode([{"dtype": "int64", "sizes": [3], "fill": "small", "seed": 5}], CPU)
    assert made.tolist() == fills.fill("int64", "small", 5, 3).tolist()
    assert opcases.decode({"dtype": "float32", "sizes": [2, 0], "fill": "spread", "seed": 1}, CPU).shape == (2, 0)


def test_strides_of_rows() -> None:
    assert opcases.contiguous([2, 3, 4]) == [12, 4, 1]
    assert opcases.contiguous([2, 0, 4]) == [4, 4, 1]
    assert opcases.contiguous([]) == []


def case(results: list[object]) -> opcases.Case:
    return opcases.Case("", "case", "aten::relu", [], results)


MADE = torch.zeros(2, 3)
SAID = {"dtype": "float32", "sizes": [2, 3]}


@pytest.mark.parametrize(
    ("result", "want", "right"),
    [
        pytest.param(MADE, SAID, True, id="rows"),
        pytest.param(MADE, SAID | {"strides": [3, 1]}, True, id="strides"),
        pytest.param(MADE, SAID | {"strides": [1, 2]}, False, id="other strides"),
        pytest.param(MADE.t().contiguous().t(), SAID, False, id="columns"),
        pytest.param(MADE, SAID | {"dtype": "float64"}, False, id="dtype"),
        pytest.param(MADE, SAID | {"sizes": [3, 2], "strides": [3, 1]}, False, id="sizes"),
        pytest.param(torch.zeros(2, 1, 3), {"dtype": "float32", "sizes": [2, 1, 3], "strides": [3, 9, 1]}, True, id="one"),
        pytest.param(torch.zeros(2, 0), {"dtype": "float32", "sizes": [2, 0], "strides": [9, 9]}, True, id="empty"),
        pytest.param(None, None, True, id="no gradient"),
        pytest.param(None, SAID, False, id="a lost gradient"),
        pytest.param(MADE, None, False, id="a gradient nobody asked for"),
        pytest.param(MADE, "self", True, id="an argument"),
        pytest.param(MADE.clone(), "self", False, id="a copy of an argument"),
    ],
)
def test_results_are_what_the_case_says(result: torch.Tensor | None, want: object, right: bool) -> None:
    values = {"self": MADE}
    if right:
        opcases.check(case([want]), [result], values)
        return
    with pytest.raises(ValueError, match="result 0 is"):
        opcases.check(case([want]), [result], values)


def test_a_folder_of_cases_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    write_cases(folder / "b.json", relu(name="b", cuda_only=True))
    write_cases(folder / "a.json", relu(results=[]), relu(name="right"))
    arguments = ["--cases", str(folder), "--output", str(tmp_path / "made" / "out"), "--device", "cpu"]
    assert opcases.main(arguments) == 1
    assert [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()] == [
        "a.json: 1 cases on cpu, 1 failed",
        "b.json: 0 cases on cpu, 0 failed",
    ]
    written = {name: json.loads((tmp_path / "made" / "out" / name).read_text())["results"] for name in ("a.json", "b.json")}
    assert [list(results) for results in written.values()] == [["right"], []]


def test_what_an_operation_writes_is_a_result_too(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.json", relu(writes=["self"]))
    (read,) = opcases.read(tmp_path / "cases.json")
    results, failed = opcases.digests([read], CPU)
    x = fills.fill("float32", "spread", 1, 2)
    assert failed == 0
    assert results["relu"]["results"] == [opcases.digest_tensor(torch.relu(x)), opcases.digest_tensor(x)]


def test_files_without_cases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no files of cases"):
        opcases.pairs(tmp_path, tmp_path / "out")
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [relu()]}, indent=1))
    with pytest.raises(SystemExit, match="no cases; each is a line"):
        opcases.read(tmp_path / "cases.json")
