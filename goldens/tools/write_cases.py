"""Write goldens/ops/cases: operations on small inputs, with every path of a kernel reached.

`python goldens/tools/write_cases.py [TOPIC ...]`: each topic is a module below `cases`, and a file that it writes.
Run it where samebits_reference is installed; a CPU is enough: torch gives the geometry of the results.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import casekit
from samebits_reference import opcases

TOPICS = Path(__file__).parent / "cases"
FOLDER = Path(__file__).parents[1] / "ops" / "cases"


def write(topic: Path) -> int:
    """Write the file of a topic; give how many cases it has."""
    spec = importlib.util.spec_from_file_location(f"cases_{topic.stem}", topic)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{topic}: no topic")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    casekit.cases.clear()
    module.add()
    lines = ",\n".join(json.dumps(case) for case in casekit.cases)
    text = f'{{"schema": {opcases.SCHEMA}, "cases": [\n{lines}\n]}}\n'
    (FOLDER / f"{topic.stem}.json").write_text(text, encoding="ascii")
    return len(casekit.cases)


def main(names: list[str]) -> None:
    """Write the files of some topics, or of all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for topic in [TOPICS / f"{name}.py" for name in names] or sorted(
        TOPICS.glob("*.py")
    ):
        print(f"{topic.stem}: {write(topic)} cases")


if __name__ == "__main__":
    main(sys.argv[1:])
