"""What a step does beside its operations, and what Python holds of a family."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import functools
import itertools
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from conftest import built, hand_made, probe, take

from samebits_reference import beside
from samebits_reference.beside import Generators, Traces, capture_is
from samebits_reference.reachable import Picture
from samebits_reference.watchers import undefined_results
from samebits_wire.problems import ProblemError

CPU = torch.device("cpu")
DRAWS = {
    "torch": lambda: torch.rand(1),
    "seeds": lambda: torch.manual_seed(3),
    "python": random.random,
    "python-seeds": lambda: random.seed(3),
    "numpy": np.random.random,
    "numpy-seeds": lambda: np.random.seed(3),
}


@pytest.mark.parametrize("way", DRAWS)
def test_generators_that_move_are_seen_and_put_back(way: str) -> None:
    before = (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[2])
    for _ in range(2):  # a seed set again and again shows, too
        with Generators(CPU) as generators:
            DRAWS[way]()
        assert [problem.reason for problem in generators.problems] == ["RNG_STATE_IN_REGION"]
    assert (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[2]) == before


def test_generators_that_stay() -> None:
    with Generators(CPU) as generators:
        torch.rand(3, generator=torch.Generator())
    assert generators.problems == []


class Draws(torch.nn.Module):
    def __init__(self, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.draw = draw

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.draw(x)


@pytest.mark.parametrize(
    ("draw", "reasons"),
    [
        (lambda x: x * random.random(), ["RNG_STATE_IN_REGION"]),
        (torch.rand_like, ["RANDOM_OPERATION"]),  # which says more of it than that a generator moved
    ],
)
def test_a_step_that_draws(draw: Callable[[torch.Tensor], torch.Tensor], reasons: list[str]) -> None:
    with pytest.raises(ProblemError) as refusal:
        take(hand_made(Draws(draw)), probe(built("resnet"), 1))
    assert [problem.reason for problem in refusal.value.problems] == reasons


class Asks(torch.nn.Module):
    def __init__(self, twin: bool) -> None:
        super().__init__()
        self.twin = twin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.cuda.is_current_stream_capturing() and not self.twin:
            return x + x
        return x * 2.0


def test_a_step_that_is_another_one_while_it_is_captured() -> None:
    images = probe(built("resnet"), 1)
    take(hand_made(Asks(twin=True)), images)
    with pytest.raises(ProblemError, match="CAPTURE_DEPENDENT_DISPATCH") as refusal:
        take(hand_made(Asks(twin=False)), images)
    assert "test_beside.py" in refusal.value.problems[0].detail
    asks = torch.cuda.is_current_stream_capturing
    with capture_is(True) as asked:
        assert torch.cuda.is_current_stream_capturing()
    assert len(asked) == 1
    assert torch.cuda.is_current_stream_capturing is asks


def test_memory_that_is_written_before_it_is_read() -> None:
    x = torch.rand(4)
    assert beside.undefined_memory(lambda: torch.empty(4).copy_(x)) == []
    (problem,) = beside.undefined_memory(lambda: torch.empty(4) + x)
    assert problem.reason == "UNINITIALISED_MEMORY"
    assert "test_beside.py" in problem.summary
    assert beside.undefined_memory(lambda: torch.empty(4) * 0 + torch.rand(4)) == []  # noise is for others to judge


class Slotted:
    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 1

    def count(self) -> None:
        self.number += 1


class Private:
    __slots__ = "__number", "__weakref__", "missing"

    def __init__(self) -> None:
        self.__number = 1

    def count(self) -> None:
        self.__number += 1


def function() -> Callable[[], None]:
    kept: list[int] = []

    def inner(given: list[int] = []) -> None:  # noqa: B006 (it is what is looked at)
        kept.append(1)
        later()

    inner.hung = [1]  # type: ignore[attr-defined]
    if kept:
        later = print
    return inner


def numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


class Held:
    """Something of everything."""

    calls = 0  # of all of them

    def __init__(self) -> None:
        self.module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        self.number, self.text, self.nothing = 1, "a", None
        self.lists = [[torch.zeros(2)], collections.deque([1])]
        self.names = {"a": types.SimpleNamespace(deep=torch.ones(1)), 7: (1, 2)}
        self.array = np.zeros(3)
        self.arrays = [np.array([{}, None]), np.array(1.5), np.float32(2), np.zeros((4, 4))[:, 1]]
        self.generator = torch.Generator()
        self.itself = self
        self.numbers, self.bytes, self.random = {1, 2}, bytearray(2), random.Random(1)
        self.many = dict.fromkeys(range(2000), 0)
        self.counter, self.items = itertools.count(), iter([1, 2, 3])
        self.draws = np.random.default_rng(1)
        self.slotted = Slotted()
        self.partial = functools.partial(print, [1])
        self.numbered = numbers()
        self.objects = np.array([1, None], dtype=object)
        self.number_in_c = ctypes.c_int(1)
        self.tensor = torch.zeros(1)
        self.tensor.hung = 1  # type: ignore[attr-defined]
        self.tensor.itself = self.tensor  # type: ignore[attr-defined]
        self.running = numbers()
        next(self.running)
        self.old_draws, self.bits = np.random.RandomState(1), np.random.PCG64(1)
        self.c_array, self.viewed = array.array("i", [1, 2]), memoryview(bytearray(2))
        self.frozen, self.objects_of = frozenset({1}), {Slotted()}
        self.many_items, self.many_kinds = list(range(2000)), set(range(2000))
        self.private = Private()
        self.function, self.method = function(), Slotted().count
        self.sparse = torch.zeros(2, 2).to_sparse()
        self.variable: contextvars.ContextVar[int] = contextvars.ContextVar("number")


def put(held: Held) -> None:
    held.names["a"].deep = torch.ones(1)


CHANGES = {
    "held.number": lambda held: setattr(held, "number", 2),
    "held.nothing": lambda held: setattr(held, "nothing", 0),
    "held.module.0.weight": lambda held: setattr(held.module[0].weight, "data", torch.zeros(2, 2)),
    "held.module.1.running_mean": lambda held: setattr(held.module[1], "running_mean", torch.zeros(2)),
    "held.module.training": lambda held: setattr(held.module, "training", False),
    "held.lists[0].length": lambda held: held.lists[0].append(3),
    "held.names['a'].deep": put,
    "held.names.keys": lambda held: held.names.pop(7),
    "held.array": lambda held: held.array.__setitem__(0, 1.0),
    "held.generator": lambda held: torch.rand(1, generator=held.generator),
    "held.new": lambda held: setattr(held, "new", torch.zeros(1)),
    "held.lists[1][0]": lambda held: held.lists[1].__setitem__(0, 2),
    "held.numbers.values": lambda held: (held.numbers.discard(1), held.numbers.add(3)),
    "held.bytes": lambda held: held.bytes.__setitem__(0, 1),
    "held.random": lambda held: held.random.random(),
    "held.many.values": lambda held: held.many.__setitem__(7, 1),
    "held.counter": lambda held: next(held.counter),
    "held.items": lambda held: next(held.items),
    "held.draws": lambda held: held.draws.random(),
    "held.slotted.number": lambda held: setattr(held.slotted, "number", 2),
    "held.partial.args[0][0]": lambda held: held.partial.args[0].__setitem__(0, 2),
    "held.objects.list[0]": lambda held: held.objects.__setitem__(0, 2),
    "held.number_in_c": lambda held: setattr(held.number_in_c, "value", 2),
    "held.tensor.hung": lambda held: setattr(held.tensor, "hung", 2),
    "held.old_draws": lambda held: held.old_draws.random(),
    "held.bits": lambda held: held.bits.random_raw(),
    "held.c_array": lambda held: held.c_array.__setitem__(0, 2),
    "held.viewed": lambda held: held.viewed.__setitem__(0, 1),
    "held.frozen.values": lambda held: setattr(held, "frozen", frozenset({2})),
    "held.objects_of.values": lambda held: (held.objects_of.pop(), held.objects_of.add(Slotted())),
    "held.many_items.values": lambda held: held.many_items.__setitem__(1999, -1),
    "held.many_items.length": lambda held: held.many_items.append(1),
    "held.many_kinds.values": lambda held: (held.many_kinds.discard(1), held.many_kinds.add(-1)),
    "held.many_kinds.length": lambda held: held.many_kinds.discard(1),
    "held.private._Private__number": lambda held: held.private.count(),
    "held.function.kept.length": lambda held: held.function.__closure__[0].cell_contents.append(1),
    "held.function.hung[0]": lambda held: held.function.hung.__setitem__(0, 2),
    "held.function.default[0].length": lambda held: held.function.__defaults__[0].append(1),
    "held.method.__self__.number": lambda held: held.method(),
    "held.sparse": lambda held: setattr(held, "sparse", torch.zeros(2, 2).to_sparse()),
    "held.module.0.bias": lambda held: setattr(held.module[0].bias, "data", held.module[0].weight.data[0]),
    "held.text": lambda held: setattr(held, "text", b"a"),
    "held.variable.value": lambda held: held.variable.set(2),
    "held.running.number": lambda held: next(held.running),
    "held.running.at": lambda held: held.running.close(),
    "held.arrays[2]": lambda held: held.arrays.__setitem__(2, np.float32(3)),
    "held.arrays[3]": lambda held: held.arrays[3].__setitem__(0, 1.0),
    "Held.calls": lambda held: setattr(type(held), "calls", type(held).calls + 1),
    "held.numbered.at": lambda held: next(held.numbered),
    "held.module.0._forward_hooks.keys": lambda held: held.module[0].register_forward_hook(lambda *_: None),
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_picture_shows_what_changed(path: str) -> None:
    held = Held()
    before = Picture(held=held)
    assert Picture(held=held).since(before) == []
    CHANGES[path](held)
    changed = Picture(held=held).since(before)
    assert path in changed


def test_a_picture_does_not_mind_what_is_equal() -> None:
    held = Held()
    before = Picture(held=held)
    held.names[7] = (1, 2)
    held.number, held.text = 1, "a"
    held.module[0].weight.data.mul_(2)  # in place: a replay follows
    assert Picture(held=held).since(before) == []


def test_a_picture_ends_where_it_is_too_deep() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert Picture(deep=deep).since(Picture(deep=deep)) == []


def test_a_picture_knows_parameters_and_buffers() -> None:
    picture = Picture(held=Held())
    assert {"held.module.0.weight", "held.module.1.running_mean"} <= picture.registered
    assert "held.names['a'].deep" in picture.tensors.keys() - picture.registered


class Counting:
    def __init__(self) -> None:
        self.module, self.number = torch.nn.BatchNorm1d(2), 0
        self.made: torch.Tensor | None = None


def count(held: Counting) -> None:
    held.number += 1


def replace(held: Counting) -> None:
    held.number += 1
    held.module.running_mean = torch.zeros(2)


def make(held: Counting) -> None:
    held.number += 1
    held.made = torch.zeros(1)


def pictures(step: Callable[[Counting], None], held: Counting) -> tuple[Picture, Picture]:
    before = Picture(held=held)
    step(held)
    return before, Picture(held=held)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (count, "PY_SIDE_EFFECT: every step changes held.number, and"),
        (replace, "BUFFER_REPLACED_IN_REGION: every step changes held.module.running_mean, and"),
    ],
)
def test_what_every_step_leaves_behind(step: Callable[[Counting], None], said: str) -> None:
    held, traces = Counting(), Traces()
    assert not traces.began
    traces.check(*pictures(step, held), b"operations", {})  # once may be a cache that fills
    assert traces.began
    traces.check(*pictures(lambda _: None, held), b"operations", {})
    with pytest.raises(ProblemError, match=said):
        traces.check(*pictures(step, held), b"operations", {})


def test_steps_of_other_operations_are_for_the_suite_to_judge() -> None:
    held, traces = Counting(), Traces()
    for data in (b"a", b"b", b"b"):
        traces.check(*pictures(count, held), data, {"constant.0": torch.tensor(float(held.number))})


def test_constants_that_hold_other_bits() -> None:
    held, traces = Counting(), Traces()
    for number in (1.0, 2.0):  # weights may change between steps
        traces.check(*pictures(lambda _: None, held), b"a", {"constant.0": torch.ones(1), "weight": torch.tensor(number)})
    with pytest.raises(ProblemError, match=r"UNSEEN_WORK: constant\.0 holds other bits"):
        traces.check(*pictures(lambda _: None, held), b"a", {"constant.0": -torch.ones(1)})


def test_what_a_captured_step_leaves_behind() -> None:
    beside.check_capture(*pictures(lambda _: None, Counting()))
    with pytest.raises(ProblemError, match=r"PY_SIDE_EFFECT: the step changes held\.number while it is captured"):
        beside.check_capture(*pictures(count, Counting()))
    with pytest.raises(ProblemError, match=r"LAZY_BUFFER_IN_POOL: held\.made was made while"):
        beside.check_capture(*pictures(make, Counting()))


def test_some_of_many_are_named() -> None:
    assert [beside.named("abcde"[:number]) for number in (1, 3, 5)] == ["a", "a, b, c", "a, b, c and 2 more"]


def test_writes_that_no_operation_names_are_seen() -> None:
    class Writes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("gain", torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made = x * self.gain
            __import__("ctypes").memset(self.gain.data_ptr(), 0, 4)
            return made

    with pytest.raises(ProblemError, match="WRITES_STATE: gain holds other bits"):
        take(hand_made(Writes()), probe(built("resnet"), 1))


def test_results_that_operations_leave_undefined() -> None:
    aten, none = torch.ops.aten, frozenset()
    x, one = torch.zeros(1, 1, 2, 2), torch.ones(1)

    def norm(training: bool) -> tuple[object, ...]:
        return (x, one, one, one, one, training, 0.1, 1e-5)

    for func, args, undefined in (
        (aten.empty.memory_format, ([1],), {0}),
        (aten.empty_like.default, (x,), {0}),
        (aten.empty_strided.default, ([1], [1]), {0}),
        (aten.new_empty.default, (x, [1]), {0}),
        (aten.new_empty_strided.default, (x, [1], [1]), {0}),
        (aten.zeros.default, ([1],), none),
        (aten.native_batch_norm.default, norm(False), {1, 2}),
        (aten.native_batch_norm.default, norm(True), none),
        (aten.cudnn_batch_norm.default, norm(True), {3}),
        (aten.cudnn_batch_norm.default, norm(False), none),
    ):
        assert undefined_results(func, args) == undefined, func
