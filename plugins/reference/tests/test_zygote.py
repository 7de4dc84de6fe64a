"""The zygote of the reference: what it imports, and that its forks give the bits of a process that was started by itself.

How forks come to a host is tested with the host, in bridge/host.
"""

from __future__ import annotations

import contextlib
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
        between = os.getpid()
        if os.fork() == 0:
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


PLUGIN = """
import json, os, sys, threading
from samebits_wire.zygote import fork_plugins

def prepare():
    {prepare}

def plugin():
    {plugin}
    passed = os.read(int(os.environ["SAMEBITS_FD_PASSED"]), 100).decode() if "SAMEBITS_FD_PASSED" in os.environ else ""
    said = {{"passed": passed, "leads": os.getpgrp() == os.getpid(), "parent": os.getppid(), "env": dict(os.environ)}}
    print(json.dumps(said), flush=True)
    print("noise", file=sys.stderr, flush=True)

fork_plugins(prepare, plugin)
"""


class Zygote:
    """The host's side of a zygote that imports nothing."""

    def __init__(self, prepare: str = "pass", plugin: str = "pass") -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLUGIN.format(prepare=prepare, plugin=plugin)],
            env=os.environ | {"SAMEBITS_FD_FORK": str(theirs.fileno()), "PYTHONPATH": str(BELOW)},
            pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        theirs.close()

    def told(self) -> dict[str, object]:
        return json.loads(self.socket.recv(1 << 16))

    def fork(self, host: int, env: list[str], **files: int) -> tuple[dict[str, object], str, str]:
        """Have a plugin forked; give the answer, and what the plugin wrote until it was gone."""
        pipes = [os.pipe(), os.pipe()]
        order = {"host": host, "env": env, "files": list(files)}
        socket.send_fds(self.socket, [json.dumps(order).encode()], [*(write for _, write in pipes), *files.values()])
        written = []
        answer = self.told()
        for read, write in pipes:
            os.close(write)
            with os.fdopen(read) as lines:
                written.append(lines.read())
        return answer, written[0], written[1]

    def descriptors(self) -> int:
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def children(self) -> list[str]:
        """Give the processes below it, those among them that have ended and that it did not wait for."""
        below = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it is gone
                if int(entry.read_text().rpartition(")")[2].split()[1]) == self.process.pid:
                    below.append(entry.parent.name)
        return below

    def end(self) -> tuple[int, str, str]:
        self.socket.close()
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def test_a_fork_lives_as_a_plugin_that_was_started() -> None:
    zygote, host = Zygote(), _reaper()
    assert zygote.told() == {"problem": ""}
    for word in ("one", "two"):
        read, write = os.pipe()
        os.write(write, word.encode())
        os.close(write)
        answer, out, err = zygote.fork(host, ["A=b=c", "EMPTY="], SAMEBITS_FD_PASSED=read)
        os.close(read)
        assert list(answer) == ["pid"]
        said = json.loads(out)
        number = said["env"].pop("SAMEBITS_FD_PASSED")
        assert number.isdecimal()
        assert said == {"passed": word, "leads": True, "parent": host, "env": {"A": "b=c", "EMPTY": ""}}
        assert err == "noise\n"
    assert zygote.descriptors() == 4  # none of a plugin's stays open
    assert zygote.children() == []
    assert zygote.end() == (0, "", "")


def test_a_fork_that_cannot_be_is_told_and_leaves_nothing_open() -> None:
    zygote = Zygote("def full(): raise OSError(11, 'no more processes')\n    os.fork = full")
    zygote.told()
    for _ in range(2):
        answer, out, _ = zygote.fork(_reaper(), [])
        assert (answer, out) == ({"problem": "[Errno 11] no more processes"}, "")
        assert zygote.descriptors() == 4
    assert zygote.end() == (0, "", "")


def test_a_fork_whose_host_is_gone_ends() -> None:
    zygote = Zygote()
    zygote.told()
    answer, out, _ = zygote.fork(2**22 - 1, [])  # no such process
    assert (list(answer), out) == (["pid"], "")
    assert zygote.end()[0] == 0


def test_a_plugin_that_fails_says_so_where_plugins_do() -> None:
    zygote = Zygote(plugin="raise ValueError('no weights')")
    zygote.told()
    answer, out, err = zygote.fork(_reaper(), [])
    assert (list(answer), out) == (["pid"], "")
    assert err.endswith("ValueError: no weights\n")
    assert zygote.end() == (0, "", "")


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        ("raise ImportError('no torch')", "ImportError: no torch"),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "what it imported started 1 threads"),
    ],
)
def test_what_cannot_be_forked_is_told(prepare: str, problem: str) -> None:
    zygote = Zygote(prepare)
    assert zygote.told() == {"problem": problem}
    status, _, said = zygote.end()
    assert (status, said) == (1, f"{problem}\n")


def test_what_is_printed_while_it_imports_is_log() -> None:
    zygote = Zygote("print('a banner', flush=True)")
    zygote.told()
    assert zygote.end() == (0, "", "a banner\n")


@pytest.mark.parametrize("number", ["", "x", "99"])
def test_a_zygote_by_hand_says_what_it_is(number: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLUGIN.format(prepare="pass", plugin="pass")],
        env=os.environ | {"SAMEBITS_FD_FORK": number, "PYTHONPATH": str(BELOW)},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"SAMEBITS_FD_FORK is '{number}': a Samebits host starts this, it does nothing by hand\n"
