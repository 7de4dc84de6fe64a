"""What may happen between the steps of a family that predicts. docs/wire.md says what each situation is."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

from samebits_reference import holding
from samebits_reference.exhaustion import is_out_of_memory
from samebits_wire.arm import unknown_situation
from samebits_wire.problems import Problem, ProblemError

if TYPE_CHECKING:
    from samebits_reference.predict_session import PredictSession

Facts = dict[str, str]


def situate(session: PredictSession, situation: str, seed: int) -> Facts:
    """Put a session into a situation, and say what was done."""
    if situation == "seed":
        torch.manual_seed(seed)
        return {"seed": str(seed)}
    known = dict(_ANYWHERE)
    if session.graphs:
        known |= _OF_GRAPHS
    if session.device.type == "cuda":
        known |= _ON_A_GPU
    if situation not in known:
        raise unknown_situation(situation)
    return known[situation](session)


def _move(session: PredictSession) -> Facts:
    """Tell the graphs nothing: they have to see it."""
    session.wait()
    session.left_behind += holding.move(session.built.module)
    session.wait()
    return {"storages": str(len(session.left_behind))}


def _update(session: PredictSession) -> Facts:
    return {"parameters": str(holding.scale(session.built.module, 0.5))}


def _restore(session: PredictSession) -> Facts:
    return {"parameters": str(holding.scale(session.built.module, 2.0))}


def _mode(session: PredictSession) -> Facts:
    """Train and evaluate, and step in every mode of autograd."""
    built = session.built
    built.module.train()
    built.module.eval()
    images = session.statics[0].double() if built.double else session.statics[0]
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        try:
            with mode(), built.autocast(), _nothing_saved():
                built.forward(images)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            what = f"a step under {mode.__name__} fails: {(str(error).splitlines() or [''])[0]}"
            raise ProblemError(Problem("MODE_NOT_KEYED", what, "situation")) from error
    session.wait()
    return {"modes": "train, eval; grad, no_grad, inference_mode"}


def _nothing_saved() -> contextlib.AbstractContextManager[None]:
    """Let autograd keep none of the tensors that a backward would need, for there is none: they may take all memory."""
    return torch.autograd.graph.saved_tensors_hooks(lambda _tensor: None, _no_backward)


def _no_backward(_kept: None) -> torch.Tensor:
    raise AssertionError("nobody goes backward here")


def _release(session: PredictSession) -> Facts:
    session.stats.latched = False
    return {"graphs": str(session.drop())}


class _FaultError(RuntimeError):
    pass


def _fail(session: PredictSession) -> Facts:
    def interrupt() -> None:
        if session.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
            raise _FaultError("the situation fail was asked for")

    dropped = session.drop()
    session.fault = interrupt
    return {"graphs": str(dropped)}


def _thread(session: PredictSession) -> Facts:
    """Capture in a thread that is gone when the graphs are replayed, beside another one that keeps the driver busy."""
    session.drop()
    session.stats.latched = False
    errors: list[BaseException] = []

    def capture() -> None:
        try:
            if session.device.type == "cuda":
                torch.cuda.set_device(session.device)
            session.recapture()
        except BaseException as error:  # the arm's thread raises it
            errors.append(error)

    with _busy(session.device) as rounds:
        thread = threading.Thread(target=capture)
        thread.start()
        thread.join()
    session.wait()
    if errors:
        raise errors[0]
    if session.stats.latched:
        what = f"there were graphs, and none can be captured again: {session.stats.fallback_reason}"
        raise ProblemError(Problem("RECAPTURE_FAILED", what, "situation"))
    return {"graphs": str(len(session.captured())), "pinned": str(sum(rounds))}


@contextlib.contextmanager
def _busy(device: torch.device) -> Iterator[list[int]]:
    """Meanwhile allocate and free pinned memory, record events and ask for them, in a thread of its own."""
    stop, rounds = threading.Event(), [0]

    def work() -> None:
        torch.cuda.set_device(device)
        with torch.cuda.stream(torch.cuda.Stream()):
            while not stop.is_set():
                block = torch.empty(1 << (12 + rounds[0] % 10), dtype=torch.uint8, pin_memory=True)
                event = torch.cuda.Event()
                event.record()
                event.query()
                del block
                rounds[0] += 1

    thread = threading.Thread(target=work)
    if device.type == "cuda":
        thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        if device.type == "cuda":
            thread.join()


def _stream(session: PredictSession) -> Facts:
    """Leave a step in flight and go on elsewhere: its order is kept by an event, no host waits."""
    with torch.cuda.device(session.device):
        before, after = torch.cuda.current_stream(), torch.cuda.Stream()
        session.launch()
        after.wait_stream(before)
        torch.cuda.set_stream(after)
    return {"from": hex(before.cuda_stream), "to": hex(after.cuda_stream)}


def _device(session: PredictSession) -> Facts:
    others = [number for number in range(torch.cuda.device_count()) if number != session.device.index]
    if not others:
        raise ProblemError(Problem("NO_SECOND_DEVICE", "there is one CUDA device", "situation"))
    torch.cuda.set_device(others[0])
    return {"current": f"cuda:{others[0]}"}


_Act = Callable[["PredictSession"], Facts]
_ANYWHERE: dict[str, _Act] = {"move": _move, "update": _update, "restore": _restore, "mode": _mode}
_OF_GRAPHS: dict[str, _Act] = {"thread": _thread, "release": _release, "fail": _fail}
_ON_A_GPU: dict[str, _Act] = {"stream": _stream, "device": _device}
