"""Run the reference plugin's zygote: `python -m samebits_reference.zygote`. A Samebits host starts it.

Importing torch and libreyolo takes most of a plugin's start. Here it is done once, no device is touched, and every plugin
is a fork.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib

from samebits_reference import profile
from samebits_reference.__main__ import make
from samebits_wire.serve import serve
from samebits_wire.zygote import fork_plugins


def prepare() -> None:
    """Import what every plugin does, and see that CUDA still sleeps: a fork could not use it."""
    profile.EXACT_1.apply_environment()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy's and scipy's start threads when they are imported
    import torch

    from samebits_reference.settle import settle

    settle()
    importlib.import_module("samebits_reference.arms")
    with contextlib.suppress(ImportError):  # Build says better what is missing
        importlib.import_module("libreyolo.models.resnet.model")
    if torch.cuda.is_initialized() or _has_open("/dev/nvidia-uvm"):
        raise RuntimeError("what it imported woke CUDA")


def _has_open(path: str) -> bool:
    for descriptor in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing is gone
            if str(descriptor.readlink()) == path:
                return True
    return False


if __name__ == "__main__":
    fork_plugins(prepare, lambda: serve(make))
