"""Run the reference plugin: `python -m samebits_reference`. A Samebits host starts it."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Serve until the host is gone."""
    from samebits_reference import profile
    from samebits_wire.serve import serve

    # Before torch is imported: libraries read these once.
    for known in profile.PROFILES.values():
        known.apply_environment()
    return serve(_arm)


def _arm() -> object:
    import torch

    from samebits_reference.arms import ReferenceArm

    threads = os.environ.get("SAMEBITS_THREADS", "")
    if threads.isdecimal() and int(threads) > 0:
        torch.set_num_threads(int(threads))
    return ReferenceArm()


if __name__ == "__main__":
    sys.exit(main())
