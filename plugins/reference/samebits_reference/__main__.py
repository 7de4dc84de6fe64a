"""Run the reference plugin: `python -m samebits_reference`. A Samebits host starts it."""

from __future__ import annotations

import os

from samebits_reference import profile
from samebits_wire.arm import Arm
from samebits_wire.serve import serve


def make() -> Arm:
    """Make the arm after the handshake, for torch takes seconds to import."""
    # Before torch is imported: libraries read these once.
    profile.EXACT_1.apply_environment()
    import torch

    from samebits_reference.arms import ReferenceArm
    from samebits_reference.settle import settle

    threads = os.environ.get("SAMEBITS_THREADS", "")
    if threads:
        torch.set_num_threads(int(threads))
    settle()
    return ReferenceArm()


if __name__ == "__main__":
    serve(make)
