"""Run operation cases in PyTorch and write the digests of their results (goldens/ops/README.md).

`python -m samebits_reference.opcases --cases goldens/ops/cases --output goldens/ops/h200 --device cuda`
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from samebits_reference import profile

# Before torch is imported: libraries read these once.
profile.EXACT_1.apply_environment()

import torch  # noqa: E402

from samebits_reference import environment, fills  # noqa: E402
from samebits_wire.digest import digest_bytes, digest_tensor  # noqa: E402

SCHEMA = 1
FORMATS = {
    "contiguous": torch.contiguous_format,
    "preserve": torch.preserve_format,
    "channels_last": torch.channels_last,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One operation on one set of inputs."""

    digest: str  # of the line that it was read from
    name: str
    operation: str  # aten::add.Tensor
    arguments: list[tuple[str, Any]]  # as they stand in the file
    results: list[Any]
    cuda_only: bool = False
    writes: tuple[str, ...] = ()  # arguments that the operation changes though its schema does not say so


def read(path: Path) -> list[Case]:
    """Read a file of cases, one a line."""
    cases = []
    for line in path.read_text(encoding="ascii").splitlines():
        text = line.strip().removesuffix(",")
        if not text.startswith('{"name"'):
            continue
        data = json.loads(text)
        arguments = [(name, value) for name, value in data["arguments"]]
        digest, only = digest_bytes(text.encode("ascii")), data.get("cuda_only", False)
        writes = tuple(data.get("writes", ()))
        cases.append(Case(digest, data["name"], data["operation"], arguments, data["results"], only, writes))
    if not cases:
        raise SystemExit(f"{path}: no cases; each is a line")
    return cases


def operator(name: str) -> Any:
    """Find an operation by the name that recordings have."""
    library, _, rest = name.partition("::")
    path, _, overload = rest.partition(".")
    if library == "torchvision":
        import torchvision  # type: ignore[import-untyped]  # noqa: F401  # registers its operations
    return getattr(getattr(getattr(torch.ops, library), path), overload or "default")


def tensor(spec: dict[str, Any], device: torch.device) -> torch.Tensor:
    """Make an input on a buffer of its own."""
    sizes = spec["sizes"]
    strides = spec.get("strides") or contiguous(sizes)
    offset = spec.get("offset", 0)
    numbers = 0 if 0 in sizes else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    buffer = fills.fill(spec["dtype"], spec["fill"], spec["seed"], offset + numbers).to(device)
    return buffer.as_strided(sizes, strides, offset)


def contiguous(sizes: list[int]) -> list[int]:
    """Give the strides of a row-major tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def decode(value: Any, device: torch.device) -> Any:
    """Make an argument of what stands in the file."""
    if isinstance(value, list):
        return [decode(item, device) for item in value]
    if not isinstance(value, dict):
        return value
    if "as" in value:
        return getattr(torch, value["as"])
    if "real" in value:
        return float(value["real"])
    if "memory_format" in value:
        return FORMATS[value["memory_format"]]
    return tensor(value, device)


def run(case: Case, device: torch.device) -> tuple[list[torch.Tensor | None], dict[str, Any]]:
    """Run a case; give its results and its arguments by name. A gradient that nobody asked for is None."""
    call = operator(case.operation)
    values = {name: decode(value, device) for name, value in case.arguments}
    schema = call._schema.arguments
    if [argument.name for argument in schema] != list(values):
        raise ValueError(f"arguments {list(values)}, the schema has {[argument.name for argument in schema]}")
    positional = [values[argument.name] for argument in schema if not argument.kwarg_only]
    keywords = {argument.name: values[argument.name] for argument in schema if argument.kwarg_only}
    with torch.no_grad():
        out = call(*positional, **keywords)
    return list(out) if isinstance(out, (tuple, list)) else [out], values


def geometry(result: torch.Tensor | None) -> dict[str, Any] | None:
    """Describe a result as cases do."""
    return (
        result
        if result is None
        else {
            "dtype": str(result.dtype).removeprefix("torch."),
            "sizes": list(result.shape),
            "strides": list(result.stride()),
        }
    )


def check(case: Case, results: list[torch.Tensor | None], values: dict[str, Any]) -> None:
    """Refuse results that are not what the case says."""
    if len(results) != len(case.results):
        raise ValueError(f"{len(results)} results, the case has {len(case.results)}")
    for index, (result, want) in enumerate(zip(results, case.results, strict=True)):
        if isinstance(want, str):
            if result is not values[want]:
                raise ValueError(f"result {index} is not the argument {want}")
            continue
        got = geometry(result)
        if got is None or want is None or result is None:
            if got is not want:
                raise ValueError(f"result {index} is {got}, the case has {want}")
            continue
        # A dimension of one element has no stride that anybody can see, and an empty tensor has none at all.
        seen = [stride for size, stride in zip(got["sizes"], got["strides"], strict=True) if size != 1]
        strides = want.get("strides") or contiguous(want["sizes"])
        wanted = [stride for size, stride in zip(want["sizes"], strides, strict=True) if size != 1]
        if got["dtype"] != want["dtype"] or got["sizes"] != want["sizes"] or (result.numel() and seen != wanted):
            raise ValueError(f"result {index} is {got}, the case has {want}")


def main(arguments: list[str] | None = None) -> int:
    """Run cases; the exit status is 1 if one could not be run as written."""
    parser = argparse.ArgumentParser(prog="python -m samebits_reference.opcases", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, required=True, help="a file of cases, or a folder of them")
    parser.add_argument("--output", type=Path, required=True, help="the file, or the folder of files, to write")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    profile.EXACT_1.apply()
    settings = environment.describe(device)
    failed = 0
    for path, output in pairs(options.cases, options.output):
        results, wrong = digests(read(path), device)
        write(output, settings, results)
        print(f"{output}: {len(results)} cases on {device}, {wrong} failed")
        failed += wrong
    return 1 if failed else 0


def pairs(cases: Path, output: Path) -> list[tuple[Path, Path]]:
    """Give each file of cases with the file that its digests go to."""
    if not cases.is_dir():
        return [(cases, output)]
    files = sorted(cases.glob("*.json"))
    if not files:
        raise SystemExit(f"{cases}: no files of cases")
    output.mkdir(parents=True, exist_ok=True)
    return [(file, output / file.name) for file in files]


def digests(cases: list[Case], device: torch.device) -> tuple[dict[str, Any], int]:
    """Run cases; give digests by name, and how many could not be run."""
    results: dict[str, Any] = {}
    failed = 0
    for case in cases:
        if case.cuda_only and device.type != "cuda":
            continue
        try:
            out, values = run(case, device)
            check(case, out, values)
        except (RuntimeError, ValueError, NotImplementedError) as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            failed += 1
            continue
        made = [result for result in out if result is not None] + [values[name] for name in case.writes]
        results[case.name] = {"case": case.digest, "results": [digest_tensor(result) for result in made]}
    return results, failed


def write(path: Path, settings: dict[str, str], results: dict[str, Any]) -> None:
    """Write digests, a case a line."""
    head = json.dumps({"schema": SCHEMA, "profile": profile.EXACT_1.name, "environment": settings}, indent=1)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(result)}" for name, result in sorted(results.items()))
    path.write_text(f'{head[:-2]},\n "results": {{\n{lines}\n}}}}\n', encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
