"""Serves an arm to the host that started this process. See docs/wire.md."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import sys
from collections.abc import Callable

import grpc

from samebits_wire import arm_pb2 as wire
from samebits_wire import arm_pb2_grpc
from samebits_wire.arm import Arm
from samebits_wire.inherit import die_with_host, inherit
from samebits_wire.log import configure
from samebits_wire.loop import Loop
from samebits_wire.memory import Memory
from samebits_wire.servicer import GoPlugin, Servicer

_HANDSHAKE = 1  # of how a plugin is started
_THREADS = 8  # they only wait for the arm's thread, health and shutdown aside


def serve(arm: Arm | Callable[[], Arm]) -> None:
    """Serve an arm, on this thread, until the host is done.

    Given a class or a function, `serve` makes the arm after the handshake: import torch there, for a host waits for the
    handshake and knows nothing of slow imports. What it raises is told to the host at its first call.

    Ends the process if there is no host or the host dies.
    """
    ends = inherit()
    die_with_host(ends.life)
    sys.setswitchinterval(0.0002)  # a busy thread delays the others' steps by this much
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host decides what an interrupt means
    memory = Memory(ends.memory)
    loop = Loop(ends.memory, ends.step, memory)
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="call"),
        options=[("grpc.so_reuseport", 0), ("grpc.max_metadata_size", 1 << 16)],
    )
    arm_pb2_grpc.add_ArmServicer_to_server(Servicer(loop), server)
    server.add_generic_rpc_handlers((GoPlugin(loop.stop),))
    credentials = grpc.ssl_server_credentials(
        [(ends.credentials.key, ends.credentials.certificate)], ends.credentials.ca, require_client_auth=True
    )
    server.add_secure_port(f"unix:{ends.socket_path}", credentials)
    making = loop.do(lambda: _make(loop, arm))  # before any call can come: calls are done in their order
    server.start()
    _handshake(ends.socket_path)
    configure()
    loop.run()
    with contextlib.suppress(Exception):
        if making.exception() is None:
            loop.arm.close()
    server.stop(grace=0.2).wait(0.5)
    sys.stderr.flush()
    os._exit(0)  # threads of libraries must not keep a plugin alive


def _handshake(path: str) -> None:
    """Print the one line that the host waits for; whatever is printed later is log."""
    os.write(1, f"1|{_HANDSHAKE}|unix|{path}|grpc|\n".encode())
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _make(loop: Loop, arm: Arm | Callable[[], Arm]) -> None:
    try:
        loop.arm = arm if isinstance(arm, Arm) else arm()
    except BaseException as error:
        loop.arm = _Broken(error)
        raise


class _Broken(Arm):
    """Stands for an arm that could not be made, and says so at every call."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def describe(self) -> wire.DescribeReply:
        raise self._error

    def load(self, request: wire.LoadRequest, memory: Memory) -> wire.LoadReply:
        raise self._error

    def build(self, request: wire.BuildRequest, memory: Memory) -> wire.BuildReply:
        raise self._error
