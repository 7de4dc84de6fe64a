"""The arm reference-compile. What a compiler makes of a step only a GPU can tell: test_gpu.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import HostMemory, built, same_bits

from samebits_reference import compile_session, families, profile
from samebits_reference.arms import COMPILE, ReferenceArm
from samebits_reference.compile_session import WARM_UP_RUNS, CompileSession
from samebits_reference.families import Order, flatten
from samebits_reference.observe import Observer
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import ProblemError


class Compiler:
    """Stands in for torch.compile: counts what it is asked for, and may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.modes: list[str] = []
        self.calls = 0
        self._error = error

    def __call__(self, step: Callable[..., Any], mode: str) -> Callable[..., Any]:
        self.modes.append(mode)

        def compiled(*args: torch.Tensor) -> Any:
            assert not torch.is_grad_enabled()
            if self._error:
                raise self._error
            self.calls += 1
            return step(*args)

        return compiled


def opened(monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> CompileSession:
    monkeypatch.setattr(torch, "compile", compiler)
    return CompileSession(COMPILE, profile.EXACT_1, families.build(Order("resnet", imgsz=32)))


def prepare(session: CompileSession, host: HostMemory) -> tuple[list[wire.Bank], wire.Bank]:
    inputs = [host.bank([spec.message() for spec in session.inputs]) for _ in range(2)]
    output = host.bank([spec.message() for spec in session.outputs])
    for seed, bank in enumerate(inputs):
        (images,) = host.tensors(bank)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
    session.prepare(host.memory, wire.PrepareRequest(inputs=inputs, outputs=[output]))
    return inputs, output


def test_steps_are_compiled(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    compiler = Compiler()
    session = opened(monkeypatch, compiler)
    inputs, output = prepare(session, host)
    assert (compiler.modes, compiler.calls) == (["reduce-overhead"], WARM_UP_RUNS)
    for number, bank in enumerate(inputs):
        session.give(number)
        session.run()
        session.take(0)
        (images,) = host.tensors(bank)
        (given,) = host.tensors(output)
        ((_, eager),) = flatten(built("resnet", imgsz=32).step(images))
        assert same_bits(given, eager)
    assert compiler.calls == WARM_UP_RUNS + 2
    assert (session.stats.replays, session.stats.eager_steps, session.stats.fallback_reason) == (2, 0, "")
    session.watch(Observer())  # eagerly
    assert compiler.calls == WARM_UP_RUNS + 2


def test_what_cannot_be_compiled_is_refused(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    session = opened(monkeypatch, Compiler(RuntimeError("Failed to find C compiler.\nPlease specify one.")))
    with pytest.raises(ProblemError) as caught:
        prepare(session, host)
    (problem,) = caught.value.problems
    assert problem.reason == "COMPILE_FAILED"
    assert "RuntimeError: Failed to find C compiler." in problem.summary
    assert "\n" not in problem.summary


def test_a_profile_that_a_compiler_changes_is_seen(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    session = opened(monkeypatch, Compiler())

    def changes() -> None:
        torch.backends.cudnn.deterministic = False

    monkeypatch.setattr(session, "wait", changes)
    try:
        with pytest.raises(ProblemError, match="PROFILE_NOT_APPLIED"):
            prepare(session, host)
    finally:
        profile.EXACT_1.apply()


def test_breaks_are_said(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    from torch._dynamo.utils import counters

    session = opened(monkeypatch, Compiler())
    monkeypatch.setitem(counters, "graph_break", {"a branch": 2, "a print": 1})
    monkeypatch.setitem(counters, "inductor", {"cudagraph_skips": 0})
    prepare(session, host)
    assert session.stats.fallback_reason == "3 breaks of the traced graph"


def test_graphs_are_counted(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    """A capture that the compiler makes has its nodes counted before it ends; an empty one only makes a pool."""
    captures = iter([None, 40, 2])
    ended: list[object] = []
    monkeypatch.setattr(compile_session, "_nodes_of_capture", lambda: next(captures))
    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_end", ended.append)
    graphs = [object(), object(), object()]

    class Capturing(Compiler):
        def __call__(self, step: Callable[..., Any], mode: str) -> Callable[..., Any]:
            compiled = super().__call__(step, mode)

            def capturing(*args: torch.Tensor) -> Any:
                if len(ended) < len(graphs):
                    torch.cuda.CUDAGraph.capture_end(graphs[len(ended)])  # type: ignore[arg-type]
                return compiled(*args)

            return capturing

    session = opened(monkeypatch, Capturing())
    prepare(session, host)
    session.run()
    assert ended == graphs
    assert (session.stats.captures, session.stats.launches) == (2, 42)


def test_it_needs_a_gpu_and_a_family(host: HostMemory) -> None:
    arm = ReferenceArm()
    with pytest.raises(ProblemError, match="NO_CUDA"):
        arm.build(wire.BuildRequest(family="resnet", arm=COMPILE, device="cpu"), host.memory)
    with pytest.raises(ProblemError, match="does not train"):
        arm.build(wire.BuildRequest(family="resnet", arm=COMPILE, device="cuda:0", mode="train"), host.memory)
    with pytest.raises(ProblemError, match="UNEXPECTED_RECORDING"):
        arm.load(wire.LoadRequest(recording=host.put(b"x"), arm=COMPILE, device="cuda:0"), host.memory)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_on_a_gpu_every_step_is_a_replay(precision: str, host: HostMemory) -> None:
    arm = ReferenceArm()
    request = wire.BuildRequest(family="resnet", arm=COMPILE, device="cuda:0", imgsz=64, precision=precision)
    built_reply = arm.build(request, host.memory)
    length = built_reply.weights_length
    place = host.region(length)
    arm.export(wire.ExportRequest(what=wire.ExportRequest.WHAT_WEIGHTS, region=place), host.memory)
    loaded = arm.load(wire.LoadRequest(weights=place, device="cuda:0", arm=COMPILE), host.memory)
    inputs, outputs = [host.bank(built_reply.inputs) for _ in range(2)], [host.bank(loaded.outputs) for _ in range(2)]
    given = []
    for seed, bank in enumerate(inputs):
        (images,) = host.tensors(bank)
        images.copy_(torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)))
        given.append(images)
    arm.prepare(wire.PrepareRequest(inputs=inputs, outputs=outputs), host.memory)
    before = arm.stats().launches
    eager = families.build(Order("resnet", device="cuda:0", imgsz=64, precision=precision))
    for number in (0, 1, 0):
        arm.step(number, number)
        ((_, expected),) = flatten(eager.step(given[number].to("cuda:0")))
        (got,) = host.tensors(outputs[number])
        torch.testing.assert_close(got, expected.cpu(), rtol=0.05, atol=0.05)
    stats = arm.stats()
    assert (stats.eager_steps, stats.replays, stats.fallback_reason) == (0, 3, "")
    assert stats.captures >= 1
    nodes, rest = divmod(stats.launches - before, 3)
    assert rest == 0
    assert 10 < nodes < 200
    assert stats.reserved_bytes >= stats.peak_bytes > 0
    assert len(arm.measure(wire.MeasureRequest(input_bank=0, warmup=1, iterations=3)).milliseconds) == 3
