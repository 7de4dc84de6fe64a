"""What happens between steps: weights that move or change, graphs that are released or cannot be captured."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import HostMemory, same_bits
from test_situations import StandIn, fill, opened

from samebits_reference import graphs, holding, profile, weights
from samebits_reference.arms import EAGER, GRAPH
from samebits_reference.families import Order, build, flatten
from samebits_reference.predict_session import PredictSession
from samebits_wire import arm_pb2 as wire
from samebits_wire import recording_pb2 as pb
from samebits_wire.problems import Problem, ProblemError


class Frozen(StandIn):
    """A stand-in that reads the weights where they lay when it was captured, as a graph does."""

    def __init__(self, step: Any, *, watched: bool = False) -> None:
        try:
            step()  # warm-up
            super().__init__(step, watched=watched)
        except RuntimeError as error:
            raise ProblemError(graphs._failure(error)) from error
        self._held = {name: tensor.detach() for name, tensor in StandIn.of.module.named_parameters()}

    def replay(self) -> None:
        now = {name: parameter.data for name, parameter in StandIn.of.module.named_parameters()}
        for name, parameter in StandIn.of.module.named_parameters():
            parameter.data = self._held[name]
        super().replay()
        for name, parameter in StandIn.of.module.named_parameters():
            parameter.data = now[name]


class Stage:
    """A graph session of one bank, and the eager steps of the same module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, host: HostMemory, family: str = "fomo", imgsz: int = 48) -> None:
        self.session = opened(monkeypatch, Order(family, imgsz=imgsz))
        monkeypatch.setattr("samebits_reference.graphs.Graph", Frozen)
        self.inputs = host.bank([spec.message() for spec in self.session.inputs])
        self.outputs = host.bank([spec.message() for spec in self.session.outputs])
        self.host = host
        of = StandIn.of.module
        self.session.load(weights.encode(weights.state(of)), b"")
        request = wire.PrepareRequest(inputs=[self.inputs], outputs=[self.outputs], cuda_graph=True)
        self.session.prepare(host.memory, request)

    def step(self, seed: int) -> None:
        images = fill(self.host.tensors(self.inputs), seed)
        self.session.give(0)
        self.session.run()
        self.session.take(0)
        eager = flatten(StandIn.of.step(images.clone()))
        assert all(same_bits(given, made) for given, (_, made) in zip(self.host.tensors(self.outputs), eager, strict=True))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        stats = self.session.stats
        return stats.captures, stats.replays, stats.eager_steps, stats.invalidations


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> Stage:
    return Stage(monkeypatch, host)


def test_weights_that_moved_are_captured_again(stage: Stage) -> None:
    stage.step(1)
    facts = stage.session.situate("move", 0)
    assert int(facts["storages"]) > 10
    stage.step(2)  # a replay that reads the old memory would give NaN
    stage.step(3)
    assert stage.counts == (1, 3, 0, 1)
    assert all(tensor.eq(0xFF).all() for tensor in stage.session.left_behind)


def test_weights_that_change_in_place_are_followed(stage: Stage) -> None:
    before = {name: tensor.clone() for name, tensor in StandIn.of.module.named_parameters()}
    stage.session.situate("update", 0)
    stage.step(1)
    name, tensor = next(StandIn.of.module.named_parameters())
    assert same_bits(tensor, before[name] * 0.5)
    stage.session.situate("restore", 0)
    stage.step(2)
    assert all(same_bits(tensor, before[name]) for name, tensor in StandIn.of.module.named_parameters())
    assert stage.counts == (0, 2, 0, 0)


def test_what_is_kept_by_versions_is_captured_again(monkeypatch: pytest.MonkeyPatch, host: HostMemory) -> None:
    """A graph of `ec` holds the bins of its distribution, which follow from two parameters."""
    stage = Stage(monkeypatch, host, "ec", 320)
    stage.step(1)
    assert stage.counts == (0, 1, 0, 0)
    for turn, situation in enumerate(("update", "restore"), 1):
        stage.session.situate(situation, 0)
        stage.step(turn)
        assert stage.counts == (turn, 1 + turn, 0, turn)


def test_a_capture_that_fails_is_the_last_until_release(stage: Stage) -> None:
    stage.session.situate("fail", 0)
    stage.step(1)
    stage.step(2)
    assert stage.counts == (0, 0, 2, 0)
    assert stage.session.stats.fallbacks == 2
    assert stage.session.stats.latched
    assert "fail was asked for" in stage.session.stats.fallback_reason
    stage.session.situate("release", 0)
    stage.step(3)
    assert not stage.session.stats.latched
    assert stage.counts == (1, 1, 2, 0)


def test_no_memory_for_a_graph_refuses_one_step(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.session.situate("release", 0)

    def full(*_arguments: object, **_options: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(graphs, "Graph", full)
        with pytest.raises(torch.OutOfMemoryError):
            stage.step(1)
        stage.step(2)
    assert stage.counts == (0, 0, 1, 0)
    assert stage.session.stats.latched
    assert "no memory" in stage.session.stats.fallback_reason
    stage.session.situate("release", 0)
    stage.step(3)
    assert stage.counts == (1, 1, 1, 0)


def test_a_thread_captures_and_is_gone(stage: Stage) -> None:
    assert stage.session.situate("thread", 0) == {"graphs": "1", "pinned": "0"}
    stage.step(1)
    assert stage.counts == (1, 1, 0, 0)


def test_modes_and_seeds_leave_the_steps_alone(stage: Stage) -> None:
    stage.session.situate("mode", 0)
    stage.step(1)
    assert not StandIn.of.module.training
    stage.session.situate("seed", 5)
    five = stage.session.generator()
    stage.session.situate("seed", 6)
    assert stage.session.generator() != five
    stage.session.situate("seed", 5)
    assert stage.session.generator() == five


@pytest.mark.parametrize(("arm", "situation"), [(GRAPH, "stream"), (GRAPH, "device"), (GRAPH, "?"), (EAGER, "fail")])
def test_what_an_arm_does_not_know(stage: Stage, arm: str, situation: str) -> None:
    session = stage.session if arm == GRAPH else PredictSession(EAGER, profile.EXACT_1, build(Order("fomo", imgsz=48)))
    with pytest.raises(ProblemError, match="UNKNOWN_SITUATION"):
        session.situate(situation, 0)


def test_what_a_graph_holds() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    held = holding.Holding(module)
    assert held.moved() == ""
    module[0].weight.data = module[0].weight.data.clone()
    assert held.moved() == "0.weight"
    held = holding.Holding(module)
    module[1].running_mean = module[1].running_mean.clone()
    assert held.moved() == "1.running_mean"
    held = holding.Holding(module)
    module[0] = torch.nn.Linear(2, 2)
    assert held.moved() == "0"
    plain, by_versions = holding.Holding(module), holding.Holding(module, versions=True)
    module[1].bias.detach().mul_(2.0)
    assert plain.moved() == ""
    assert by_versions.moved() == "1.bias"
    with torch.inference_mode():
        module[0].register_buffer("without_versions", torch.zeros(1))
    assert holding.Holding(module, versions=True).moved() == ""


def test_memory_of_a_graph_is_not_given_to_others() -> None:
    module = torch.nn.Linear(64, 64)
    address = module.weight.data_ptr()
    held = holding.Holding(module)
    module.weight.data = torch.zeros(64, 64)
    others = [torch.zeros(64, 64) for _ in range(64)]
    assert address not in [tensor.data_ptr() for tensor in others]
    assert held.moved() == "weight"


def test_tied_weights_move_together_and_are_scaled_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = torch.ones(4, 3)
            self.first = torch.nn.Parameter(whole)
            self.second = torch.nn.Parameter(whole[1:])
            self.whole_numbers = torch.nn.Parameter(torch.ones(2, dtype=torch.int32), requires_grad=False)

    tied = Tied()
    assert holding.scale(tied, 0.5) == 1
    assert tied.second.eq(0.5).all()
    assert tied.whole_numbers.eq(1).all()
    holding.move(tied)
    assert tied.first.untyped_storage()._cdata == tied.second.untyped_storage()._cdata
    tied.first.data[1] = 7
    assert tied.second[0].eq(7).all()


def fails_in(stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have steps fail in inference mode."""
    plain = stage.session.built.forward

    def forward(images: torch.Tensor) -> Any:
        if torch.is_inference_mode_enabled():
            raise error
        return plain(images)

    monkeypatch.setattr(stage.session.built, "forward", forward)


def test_a_mode_in_which_steps_fail_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_in(stage, monkeypatch, RuntimeError("inference tensors cannot\nbe saved"))
    with pytest.raises(ProblemError, match=r"MODE_NOT_KEYED: a step under inference_mode fails: inference tensors cannot$"):
        stage.session.situate("mode", 0)
    fails_in(stage, monkeypatch, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(torch.OutOfMemoryError):
        stage.session.situate("mode", 0)


def test_a_thread_that_cannot_capture_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(error: Exception) -> Any:
        def graph(*_arguments: object, **_options: object) -> None:
            raise error

        return graph

    with monkeypatch.context() as patched:
        patched.setattr(graphs, "Graph", failing(RuntimeError("the driver says no")))
        with pytest.raises(RuntimeError, match="the driver says no"):
            stage.session.situate("thread", 0)
        assert not stage.session.stats.latched
        patched.setattr(graphs, "Graph", failing(ProblemError(Problem("CAPTURE_FAILED", "there it does not work"))))
        with pytest.raises(ProblemError, match=r"RECAPTURE_FAILED.*: there it does not work"):
            stage.session.situate("thread", 0)
    assert stage.session.situate("thread", 0)["graphs"] == "1"  # however it ended before
    assert stage.counts == (1, 0, 0, 0)


def test_what_was_released_is_said(stage: Stage) -> None:
    graph = stage.session.captured()[0]
    assert stage.session.situate("release", 0) == {"graphs": "1"}
    assert graph.outputs == []
    assert stage.session.situate("release", 0) == {"graphs": "0"}
    assert stage.session.recapture() == 1
    assert stage.session.situate("fail", 0) == {"graphs": "1"}


def test_a_step_is_launched_as_steps_are(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    graph = stage.session.captured()[0]
    monkeypatch.setattr(graph, "replay", lambda: done.append("replay"))
    plain = stage.session.step
    monkeypatch.setattr(stage.session, "step", lambda statics: (done.append("step"), plain(statics))[1])
    stage.session.launch()
    stage.session.situate("release", 0)
    stage.session.launch()
    assert done == ["replay", "step"]
    assert stage.counts == (0, 0, 0, 0)  # nobody asked for it


def test_all_graphs_are_poisoned_but_not_their_inputs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    but: list[list[torch.Tensor]] = []
    monkeypatch.setattr(stage.session.captured()[0], "poison", but.append, raising=False)
    stage.session.poison()
    ((static,),) = but
    assert static is stage.session.statics[0]


class Counts(torch.nn.Module):
    """Counts its calls from a moment on, which a replay does not."""

    def __init__(self, of: torch.nn.Module) -> None:
        super().__init__()
        self.of, self.counting, self.calls = of, False, 0

    def forward(self, *given: Any) -> Any:
        self.calls += self.counting
        return self.of(*given)


def test_a_capture_that_python_sees_is_dropped(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[Frozen] = []
    monkeypatch.setattr(Frozen, "release", lambda graph: released.append(graph))
    family = stage.session.built.family
    family.model = counts = Counts(family.model)
    monkeypatch.setattr(stage.session.built, "module", counts)
    counts.counting = True
    stage.session.situate("release", 0)
    released.clear()
    stage.session.give(0)
    assert stage.session.captured() == []
    assert len(released) == 1
    assert stage.session.stats.latched
    assert "while it is captured, and a replay does not" in stage.session.stats.fallback_reason


def test_outputs_that_change_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.session.release()
    plain = stage.session.built.forward
    monkeypatch.setattr(stage.session.built, "forward", lambda images: [plain(images), images])
    stage.session.give(0)
    stage.session.run()
    with pytest.raises(ProblemError, match="OUTPUTS_CHANGED"):
        stage.session.take(0)


def test_steps_without_a_graph_of_their_sizes_are_counted(stage: Stage) -> None:
    stage.session.release()
    stage.step(1)
    assert stage.counts == (0, 0, 1, 0)
    assert stage.session.stats.fallbacks == 1
    assert stage.session.stats.fallback_reason == "there is no graph of these sizes and keys"
    assert stage.session.stats.launches == stage.session.operations


def test_prepare_drops_the_graphs_of_banks_that_are_gone(stage: Stage) -> None:
    old = stage.session.captured()[0]
    other = stage.host.bank([wire.TensorSpec(name="images", dtype=pb.DTYPE_FLOAT32, sizes=[2, 3, 48, 48])])
    stage.session.prepare(stage.host.memory, wire.PrepareRequest(inputs=[other], outputs=[], cuda_graph=True))
    assert old.outputs == []
    (now,) = stage.session.captured()
    assert now.outputs[0][1].shape[0] == 2
    stage.session.prepare(stage.host.memory, wire.PrepareRequest(inputs=[other], outputs=[]))
    assert stage.session.captured() == []
    stage.session.give(0)
    stage.session.run()
    assert stage.counts == (0, 0, 1, 0)
    assert stage.session.stats.fallbacks == 0  # eager steps were asked for
