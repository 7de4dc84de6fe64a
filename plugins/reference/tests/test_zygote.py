"""The zygote of the reference: what it imports, and that its forks give the bits of a process that was started by itself.

How forks come to a host is tested with the host, in bridge/host.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest
import torch
from conftest import built

from samebits_reference import zygote
from samebits_reference.families import flatten

BELOW = pathlib.Path(__file__).parent.parent

FORK = """
import sys
from samebits_reference import zygote
from samebits_wire.zygote import fork_plugins

def plugin():
    import hashlib, torch
    from samebits_reference import families
    torch.set_num_threads(2)
    assert "libreyolo.models.resnet.model" in sys.modules, "the fork imports again"
    step = families.build(families.Order("resnet", imgsz=64))
    images = torch.linspace(0, 1, 3 * 64 * 64).reshape(1, 3, 64, 64)
    for _, output in families.flatten(step.step(images)):
        print(hashlib.sha256(output.numpy().tobytes()).hexdigest(), flush=True)

fork_plugins(zygote.prepare, plugin)
"""


def test_a_fork_gives_the_bits_of_a_process_of_its_own() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        images = torch.linspace(0, 1, 3 * 64 * 64).reshape(1, 3, 64, 64)
        expected = [hashlib.sha256(o.numpy().tobytes()).hexdigest() for _, o in flatten(built("resnet").step(images))]
    finally:
        torch.set_num_threads(threads)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # The fork becomes a child of whoever takes orphans, and that is not this process: it must end by itself.
    environment = os.environ | {"SAMEBITS_FD_FORK": str(theirs.fileno()), "PYTHONPATH": str(BELOW)}
    with subprocess.Popen([sys.executable, "-c", FORK], env=environment, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        assert json.loads(ours.recv(1 << 16)) == {"problem": ""}
        read, write = os.pipe()
        order = {"host": _reaper(), "env": [f"{key}={value}" for key, value in environment.items()], "files": []}
        socket.send_fds(ours, [json.dumps(order).encode()], [write, 2])
        os.close(write)
        assert json.loads(ours.recv(1 << 16))["pid"] > 0
        with os.fdopen(read) as lines:
            assert lines.read().split() == expected
        ours.close()
        assert process.wait(10) == 0


@pytest.mark.parametrize("problem", ["", "raise ImportError('no torch')"])
def test_it_ends_in_silence_where_nobody_waits(problem: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = "import sys\nfrom samebits_wire.zygote import fork_plugins\n"
    code += f"def prepare():\n    sys.stdin.read()\n    {problem}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code + "fork_plugins(prepare, print)"],
        env=os.environ | {"SAMEBITS_FD_FORK": str(theirs.fileno()), "PYTHONPATH": str(BELOW)},
        pass_fds=[theirs.fileno()], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    theirs.close()
    ours.close()  # as a host does whose deadline ran out while it imported
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b"")


def _reaper() -> int:
    """Give the process that orphans go to, which may be init or a subreaper above this one."""
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            between = os.getppid()
            while os.getppid() == between:
                pass
            os.write(write, str(os.getppid()).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with os.fdopen(read) as pipe:
        return int(pipe.read())


def test_cuda_that_is_awake_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(RuntimeError, match="woke CUDA"):
        zygote.prepare()


def test_open_devices_are_seen(tmp_path: pathlib.Path) -> None:
    device = tmp_path / "nvidia-uvm"
    device.touch()
    assert not zygote._has_open(str(device))
    with device.open():
        assert zygote._has_open(str(device))
