"""The start of a plugin by itself: what it takes from the host, what it says, and its log. With a host: bridge/host."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from samebits_wire import inherit
from samebits_wire.log import Formatter

BELOW = pathlib.Path(__file__).parent.parent
KEYS = {"certificate": "c", "key": "k", "ca": "a"}


def python(code: str, files: tuple[int, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(BELOW), **environment},
        pass_fds=files, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> dict[str, int]:
    """What a host leaves, in this process."""
    step, other = socket.socketpair()
    other.close()
    read, write = os.pipe()
    os.write(write, json.dumps(KEYS).encode())
    os.close(write)
    life, mine = os.pipe()
    os.close(mine)
    files = {"MEMORY": os.memfd_create("test"), "STEP": step.detach(), "TLS": read, "LIFE": life}
    monkeypatch.setenv("SAMEBITS_PLUGIN", "arm")
    monkeypatch.setenv("PLUGIN_UNIX_SOCKET_DIR", str(tmp_path))
    for name, descriptor in files.items():
        os.set_inheritable(descriptor, True)
        monkeypatch.setenv(f"SAMEBITS_FD_{name}", str(descriptor))
    return files


def test_what_a_host_leaves_is_taken(left: dict[str, int], tmp_path: pathlib.Path) -> None:
    ends = inherit.inherit()
    assert (ends.memory, ends.step.fileno(), ends.life) == (left["MEMORY"], left["STEP"], left["LIFE"])
    assert ends.credentials == inherit.Credentials(b"c", b"k", b"a")
    assert ends.socket_path == str(tmp_path / "arm")
    # Nothing of it is for this process's own children.
    assert not [name for name in os.environ if name.startswith("SAMEBITS_FD_")]
    assert not any(os.get_inheritable(descriptor) for descriptor in (ends.memory, ends.step.fileno(), ends.life))
    ends.step.close()
    os.close(ends.memory)
    os.close(ends.life)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("SAMEBITS_FD_LIFE", None, "SAMEBITS_FD_LIFE is ''", id="missing"),
        pytest.param("SAMEBITS_FD_STEP", "x", "SAMEBITS_FD_STEP is 'x'", id="no number"),
        pytest.param("SAMEBITS_FD_MEMORY", "999", "SAMEBITS_FD_MEMORY is '999'", id="not open"),
        pytest.param("PLUGIN_UNIX_SOCKET_DIR", None, "PLUGIN_UNIX_SOCKET_DIR is not set", id="no folder"),
    ],
)
def test_what_a_host_should_have_left_is_named(
    left: dict[str, int], monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, said: str
) -> None:
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=said):
        inherit.inherit()


@pytest.mark.parametrize("cookie", [{}, {"SAMEBITS_PLUGIN": "predictor"}])
def test_by_hand_it_says_what_it_is(cookie: dict[str, str]) -> None:
    done = python("import samebits_wire.inherit as i; i.inherit()", **cookie)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a plugin of Samebits: a host such as parity starts it" in done.stderr
    assert "parity verify FAMILY --help" in done.stderr


def test_it_ends_with_its_host() -> None:
    life, host = os.pipe()
    os.write(host, b"alive")
    os.close(host)
    code = f"import threading, samebits_wire.inherit as i; i.die_with_host({life}); threading.Event().wait(50)"
    done = python(code, (life,))
    os.close(life)
    assert (done.returncode, done.stderr) == (1, "the host is gone\n")


def test_after_the_handshake_what_is_printed_is_log() -> None:
    code = "import os, sys; from samebits_wire import serve; serve._handshake('/tmp/arm'); print('hello'); os._exit(0)"
    done = python(code)
    assert done.stdout == "1|1|unix|/tmp/arm|grpc|\n"
    assert done.stderr == "hello\n"


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (logging.DEBUG, "debug"),
        (logging.INFO, "info"),
        (logging.WARNING, "warn"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "error"),
        (25, "info"),
    ],
)
def test_log_lines_have_levels(level: int, said: str) -> None:
    record = logging.LogRecord("libreyolo", level, "x.py", 1, "%s of %d\nlines", ("a", 2), None)
    record.created = 1.5
    assert json.loads(Formatter().format(record)) == {
        "@level": said,
        "@message": "a of 2\nlines",
        "@module": "libreyolo",
        "@timestamp": "1970-01-01T00:00:01.500000Z",
    }


def test_log_lines_hold_exceptions() -> None:
    try:
        {}["x"]
    except KeyError:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "it failed", None, sys.exc_info())
    line = Formatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["exception"].endswith("KeyError: 'x'")


def test_every_logger_writes_to_the_host() -> None:
    code = (
        "import logging\nlogging.basicConfig(level=logging.ERROR)\nfrom samebits_wire.log import configure\nconfigure()\n"
        "logging.getLogger('a.b').info('here')\nlogging.getLogger('a.b').debug('not here')"
    )
    done = python(code)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["@message"] == "here"


@pytest.mark.parametrize(
    ("sent", "said"),
    [(b"", "the host closed the step socket\n"), (b"X", "the host sent no step\n")],
    ids=["closed", "other"],
)
def test_without_steps_it_ends(sent: bytes, said: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(sent)
    theirs.close()
    code = (
        "import os, socket; from samebits_wire.loop import Loop; from samebits_wire.memory import CONTROL_BYTES, Memory\n"
        "memory = os.memfd_create('test'); os.ftruncate(memory, CONTROL_BYTES)\n"
        f"Loop(memory, socket.socket(fileno={ours.fileno()}), Memory(memory)).run()"
    )
    done = python(code, (ours.fileno(),))
    ours.close()
    assert (done.returncode, done.stderr) == (1, said)
