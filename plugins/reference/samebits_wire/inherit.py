"""What a host hands to a plugin at its start."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import socket
import sys
import threading

COOKIE = ("SAMEBITS_PLUGIN", "arm")


@dataclasses.dataclass(frozen=True)
class Credentials:
    """PEM texts that the host made for the two of us."""

    certificate: bytes
    key: bytes
    ca: bytes


@dataclasses.dataclass(frozen=True)
class Ends:
    """The plugin's ends of everything that it shares with the host, kept from its own children."""

    memory: int
    step: socket.socket
    life: int
    credentials: Credentials
    socket_path: str


def inherit() -> Ends:
    """Take what the host left, or end the process with a word on why there is nothing."""
    key, value = COOKIE
    if os.environ.get(key) != value:
        name = pathlib.Path(sys.argv[0]).name or "this program"
        sys.stderr.write(
            f"{name} is a plugin of Samebits: a host such as parity starts it, it does nothing by hand.\n"
            "To see it work: parity verify FAMILY --help\n"
        )
        sys.exit(2)
    memory, step, tls, life = (_take(f"SAMEBITS_FD_{name}") for name in ("MEMORY", "STEP", "TLS", "LIFE"))
    with os.fdopen(tls, "rb") as pipe:
        keys = json.load(pipe)
    credentials = Credentials(*(keys[name].encode() for name in ("certificate", "key", "ca")))
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR", "")
    if not folder:
        sys.exit("PLUGIN_UNIX_SOCKET_DIR is not set: the host is no go-plugin host")
    return Ends(memory, socket.socket(fileno=step), life, credentials, str(pathlib.Path(folder) / "arm"))


def die_with_host(life: int) -> None:
    """End the process as soon as the host has ended, however it ended."""

    def wait() -> None:
        while os.read(life, 1):
            pass
        os.write(2, b"the host is gone\n")
        os._exit(1)

    threading.Thread(target=wait, name="life", daemon=True).start()


def _take(variable: str) -> int:
    text = os.environ.pop(variable, "")
    try:
        descriptor = int(text)
        os.set_inheritable(descriptor, False)
    except (ValueError, OSError) as error:
        sys.exit(f"{variable} is {text!r}: {error}")
    return descriptor
