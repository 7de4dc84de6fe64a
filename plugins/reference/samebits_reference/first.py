"""Measures the first prediction: from the start of a Python process, through imports and weights, to outputs.

`python -m samebits_reference.first --family yolo9 --weights FILE --images FILE --device cuda:0` does what a program does
that predicts once, and nothing for the sake of a proof: no seasoning, no second run, no host to talk to. It prints one JSON
object. The digests of its outputs, which are taken after the time, show that it computed what the arms compute.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path

from samebits_reference import profile


def main(arguments: list[str]) -> int:
    """Predict once, and print when what was done, and how much memory it took."""
    began = time.monotonic_ns()
    asked = _parser().parse_args(arguments)
    began = asked.began or began
    stages: list[tuple[str, int]] = [("start", time.monotonic_ns())]

    def reached(stage: str) -> None:
        stages.append((stage, time.monotonic_ns()))

    profile.EXACT_1.apply_environment()  # before torch is imported: libraries read these once
    import torch

    from samebits_reference import families, weights
    from samebits_reference.exhaustion import is_out_of_memory
    from samebits_reference.settle import settle
    from samebits_wire.problems import ProblemError

    reached("imports")
    threads = os.environ.get("SAMEBITS_THREADS", "")
    if threads:
        torch.set_num_threads(int(threads))
    settle()
    try:
        profile.find(asked.profile).apply()
        order = families.Order(
            family=asked.family,
            size=asked.size,
            task=asked.task,
            seed=asked.seed,
            precision=asked.precision,
            device=asked.device,
            imgsz=asked.imgsz,
            batch=asked.batch,
            fresh_weights=True,  # those of the file come
        )
        constructed = families.construct(order)
        reached("construct")
        built = families.build(order, constructed)
        if built.device.type == "cuda":
            torch.cuda.set_device(built.device)
        built.load(weights.decode(Path(asked.weights).read_bytes()), ())
        reached("weights")
        images = torch.frombuffer(bytearray(Path(asked.images).read_bytes()), dtype=torch.float32)
        outputs = list(families.flatten(built.step(images.view(built.input_sizes).to(built.device))))
        given = [(name, tensor.cpu()) for name, tensor in outputs]  # waits for the device
        reached("forward")
    except ProblemError as error:
        print("\n".join(f"{problem.reason}: {problem.summary}" for problem in error.problems), file=sys.stderr)
        return 2
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        print(f"OUT_OF_MEMORY: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2

    from samebits_wire.digest import digest_tensor

    ends = [began, *(end for _, end in stages)]
    report = {
        "stages": [
            {"name": name, "ms": (end - before) / 1e6} for (name, end), before in zip(stages, ends[:-1], strict=True)
        ],
        "max_rss_bytes": _max_rss(),
        "outputs": {name: digest_tensor(tensor) for name, tensor in given},
    }
    print(json.dumps(report))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m samebits_reference.first", description="predict once")
    for name in ("family", "weights", "images"):
        parser.add_argument(f"--{name}", required=True)
    for name, usual in (("size", ""), ("task", ""), ("precision", "fp32"), ("profile", ""), ("device", "cpu")):
        parser.add_argument(f"--{name}", default=usual)
    for name, number in (("seed", 0), ("imgsz", 0), ("batch", 1), ("began", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    return parser


def _max_rss() -> int:
    """Give the most memory that this process ever had in use; 0 where the system does not say."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return int(found[1]) << 10 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
