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
