"""What is predicted with the step elsewhere is what LibreYOLO's own predict gives."""

from __future__ import annotations

import contextlib
import json
import logging
import pathlib
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from conftest import HostMemory
from PIL import Image
from predicting import Host, picture

from samebits_reference import answers, cells, checkpoints, families, own_paths, predicting
from samebits_reference.families import Order
from samebits_reference.nest import Frame
from samebits_reference.stopped import Stopped
from samebits_wire import arm_pb2 as wire
from samebits_wire.problems import Problem, ProblemError

slow = pytest.mark.slow
CELLS = [
    (Order("fomo", imgsz=96), {"conf": 0.01}),
    (Order("resnet", imgsz=64), {}),
    (Order("yolo9", imgsz=64), {"conf": 0.001, "max_det": 20}),
    (Order("rtmdet", task="segment", imgsz=64), {"conf": 0.001, "max_det": 7}),
    (Order("pidnet", imgsz=64), {}),
    (Order("zipdepth", imgsz=64), {}),
    (Order("nafnet", imgsz=64), {}),
    (Order("birefnet", imgsz=64), {}),
    pytest.param(Order("birefnet@whole", imgsz=64), {}, marks=slow),
    pytest.param(Order("yolonas", task="pose", imgsz=64), {"conf": 0.01, "max_det": 5}, marks=slow),
    pytest.param(Order("swinir", imgsz=64), {}, marks=slow),
    pytest.param(Order("depth_anything3", imgsz=56), {}, marks=slow),
    pytest.param(Order("eomt"), {}, marks=slow),
    pytest.param(Order("clip"), {}, marks=slow),
    pytest.param(Order("ppocr", imgsz=64), {"conf": 0.0}, marks=slow),
]


RESNET = cells.find("resnet", "")


@pytest.fixture
def host() -> Iterator[HostMemory]:
    memory = HostMemory(2 << 30)  # pages that nobody writes cost nothing
    yield memory
    memory.close()


def own(order: Order, sources: list[pathlib.Path], folder: pathlib.Path, **options: Any) -> list[dict[str, Any]]:
    """What LibreYOLO gives of them, in the same words."""
    family = families.build(order).family
    if order.family == "ppocr":
        family.charset = own_paths.alphabet()
    if order.imgsz:
        options["imgsz"] = order.imgsz
    form = answers.Form("rle", folder)
    results = family.predict(sources, **options)
    return [answers.answer(result, form, source, source.name) for result, source in zip(results, sources, strict=True)]


@pytest.mark.parametrize(("order", "options"), CELLS, ids=lambda value: value.family if isinstance(value, Order) else "")
def test_it_is_what_libreyolo_gives(order: Order, options: dict[str, Any], host: HostMemory, tmp_path: pathlib.Path) -> None:
    sources = [picture(tmp_path / "a.png", 80, 56), picture(tmp_path / "b.png", 40, 72, seed=1)]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    at = Host(host, family=order.family, task=order.task, imgsz=order.imgsz)
    settings = options | ({"imgsz": order.imgsz} if order.imgsz else {})
    # Both under way at once, and ended in the other order: nothing of one is in the other.
    begun = [at.begin(str(n), [source], output=ours, masks="rle", **settings) for n, source in enumerate(sources)]
    given = [at.go_on(str(n), begun[n])["results"] for n in (1, 0)][::-1]
    assert [[row["source"] for row in rows] for rows in given] == [[0], [0]]
    expected = own(order, sources, theirs, **options)
    said = [rows[0]["answer"] for rows in given]
    assert said[0] != said[1]
    assert json.loads(json.dumps(said).replace(str(ours), str(theirs))) == expected
    files = sorted(path.name for path in ours.iterdir())
    assert files == sorted(path.name for path in theirs.iterdir())
    assert all((ours / name).read_bytes() == (theirs / name).read_bytes() for name in files)


def test_a_batch_is_predicted_together(host: HostMemory, tmp_path: pathlib.Path) -> None:
    sources = [picture(tmp_path / f"{n}.png", 60 + n, 50, seed=n) for n in range(3)]
    at = Host(host, family="resnet", imgsz=64, batch=2)
    both = at.predict(*sources[:2], batch=2, imgsz=64)
    rest = at.predict(sources[2], batch=2, imgsz=64)
    assert at.shapes == [(2, 3, 64, 64), (1, 3, 64, 64)]
    theirs = own(Order("resnet", imgsz=64), sources, tmp_path, batch=2)
    assert [row["answer"] for row in both["results"] + rest["results"]] == theirs


def test_half_precision_ends_with_the_step(
    host: HostMemory, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from libreyolo.models.fomo.model import LibreFOMO

    seen = []
    plain = LibreFOMO._postprocess

    def postprocess(self: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
        seen.extend((tensor.dtype, bool((tensor == tensor.bfloat16()).all())) for _, tensor in families.flatten(output))
        return plain(self, output, *args, **kwargs)

    monkeypatch.setattr(LibreFOMO, "_postprocess", postprocess)
    at = Host(host, family="fomo", imgsz=96, precision="bf16")
    (row,) = at.predict(picture(tmp_path / "a.png", 60, 50), conf=0.01, imgsz=96)["results"]
    assert row["answer"]["points"]
    assert seen == [(torch.float32, True)] * len(seen) != []


def test_what_is_no_picture_is_named_and_the_others_go_on(host: HostMemory, tmp_path: pathlib.Path) -> None:
    good = picture(tmp_path / "good.png", 60, 50)
    torn = tmp_path / "torn.png"
    torn.write_bytes(good.read_bytes()[:2000])
    text = tmp_path / "text.png"
    text.write_text("no picture")
    video = picture(tmp_path / "video.gif", 60, 50)  # by its name, to LibreYOLO
    at = Host(host, family="resnet", imgsz=64)
    reply = at.begin("1", [text, good, tmp_path / "missing.png", torn, video], batch=4, imgsz=64)
    failed = json.loads(reply.text)["failed"]
    assert [(each["source"], each["problem"]["reason"]) for each in failed] == [
        (n, "UNREADABLE_IMAGE") for n in (0, 2, 3, 4)
    ]
    rows = at.go_on("1", reply)["results"]
    assert [(row["source"], row["width"], row["height"]) for row in rows] == [(1, 60, 50)]
    assert json.loads(at.begin("2", [text]).text).keys() == {"failed"}
    assert at.predict(good, imgsz=64)["results"][0]["answer"]["top5"]


def test_what_is_under_way_ends_with_its_family(host: HostMemory, tmp_path: pathlib.Path) -> None:
    def waiting() -> int:
        return sum(thread.name == "predict" for thread in threading.enumerate())

    before = waiting()
    at = Host(host, family="resnet", imgsz=64)
    for number in "12":
        assert at.begin(number, [picture(tmp_path / f"{number}.png", 60, 50)], imgsz=64).tensors
    assert waiting() == before + 2
    at.around.close()
    assert waiting() == before


def test_stages_out_of_order_are_refused(host: HostMemory, tmp_path: pathlib.Path) -> None:
    at = Host(host, family="resnet", imgsz=64)
    source = picture(tmp_path / "a.png", 60, 50)
    reply = at.begin("1", [source], imgsz=64)
    for stage, bank, settings, reason in (
        ("begin", None, {"number": "1", "source": [str(source)], "name": ["a"]}, "BAD_SETTING"),
        ("finish", None, {"number": "1"}, "WRONG_ORDER"),
        ("finish", None, {"number": "2"}, "NO_SUCH_PREDICTION"),
        ("give", host.bank([wire.TensorSpec(name="images", dtype=reply.tensors[0].dtype, sizes=[1, 3, 32, 32])]),
         {"number": "1"}, "WRONG_SHAPE"),
        ("develop", None, {}, "UNKNOWN_STAGE"),
        ("begin", None, {"number": "3", "source": [str(source)], "name": ["a"], "conf": "high"}, "BAD_SETTING"),
    ):  # fmt: skip
        with pytest.raises(ProblemError) as refusal:
            at.process(stage, bank, **settings)
        assert refusal.value.problems[0].reason == reason
    at.process("drop", number="1")
    at.process("drop", number="1")
    assert at.predict(source, imgsz=64)["results"]


def test_a_picture_that_libreyolo_cannot_take_is_named(
    host: HostMemory, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Host(host, family="resnet", imgsz=64)
    source = picture(tmp_path / "a.png", 60, 50)
    family = at.around._session.built.family  # type: ignore[union-attr]
    with monkeypatch.context() as patched:
        patched.setattr(family, "_preprocess", fails_with(ValueError("too\nsmall")))
        (failed,) = json.loads(at.begin("1", [source], imgsz=64).text)["failed"]
    assert failed == {
        "source": 0,
        "problem": {"reason": "PREPROCESS_FAILED", "summary": "too", "path": str(source), "detail": ""},
    }
    with monkeypatch.context() as patched:
        patched.setattr(family, "_postprocess", fails_with(ValueError("no boxes")))
        with pytest.raises(ProblemError, match="POSTPROCESS_FAILED: no boxes") as refusal:
            at.predict(source, imgsz=64)
    assert [problem.path for problem in refusal.value.problems] == [str(source)]
    for error in (torch.OutOfMemoryError("CUDA out of memory"), ProblemError(Problem("MINE", "no"))):
        reply = at.begin("1", [source], imgsz=64)
        with monkeypatch.context() as patched:
            patched.setattr(family, "_postprocess", fails_with(error))
            with pytest.raises(ProblemError) as refusal:
                at.go_on("1", reply)
        assert refusal.value.problems[0].reason == ("MINE" if isinstance(error, ProblemError) else "OUT_OF_MEMORY")
        with monkeypatch.context() as patched:
            patched.setattr(family, "_preprocess", fails_with(error))
            with pytest.raises(ProblemError) as refusal:
                at.begin("1", [source], imgsz=64)
        assert refusal.value.problems[0].reason == ("MINE" if isinstance(error, ProblemError) else "OUT_OF_MEMORY")
    assert at.predict(source, imgsz=64)["results"]  # nothing is under way


def settings(**values: str) -> predicting.Settings:
    request = wire.ProcessRequest()
    for key, value in values.items():
        request.settings.add(key=key, value=value)
    return predicting.Settings(request)


def test_settings_are_read() -> None:
    given = {"conf": "0.25", "iou": "0.5", "max_det": "7", "imgsz": "64", "batch": "2", "classes": "0,7,2", "other": "x"}
    assert settings(**given).options() == {
        "conf": 0.25, "iou": 0.5, "max_det": 7, "imgsz": 64, "batch": 2, "classes": [0, 7, 2]
    }  # fmt: skip
    assert settings().options() == {}
    assert settings().form() == answers.Form("polygon", None, False)
    form = settings(output="/tmp/x", masks="none", annotate="true").form()
    assert form == answers.Form("none", pathlib.Path("/tmp/x"), True)
    assert not settings(output="/tmp/x", annotate="false").form().annotate
    for read, path in (
        (settings(masks="bitmap").form, "masks"),
        (settings(annotate="true").form, "output"),
        (settings(classes="1,a").options, "classes"),
        (settings(max_det="1.5").options, "max_det"),
    ):
        with pytest.raises(ProblemError, match="BAD_SETTING") as refusal:
            read()
        assert [problem.path for problem in refusal.value.problems] == [f"settings/{path}"]


@pytest.mark.parametrize(("sources", "names"), [([], []), (["a.png"], []), (["a.png"], ["a", "b"])])
def test_every_source_has_a_name(host: HostMemory, sources: list[str], names: list[str]) -> None:
    at = predicting.Predictions(types.SimpleNamespace(built=families.build(Order("resnet", imgsz=64))))  # type: ignore[arg-type]
    request = wire.ProcessRequest(stage="begin")
    request.settings.add(key="number", value="1")
    for key, values in (("source", sources), ("name", names)):
        for value in values:
            request.settings.add(key=key, value=value)
    with pytest.raises(ProblemError, match="BAD_SETTING: a number twice, or not as many names as sources"):
        at.process(request, host.memory)


def test_the_step_of_a_segment_ends_in_single_precision() -> None:
    def built(precision: str, segment: str, dispatches: bool = True) -> Any:
        family = types.SimpleNamespace(_forward=lambda images: images.to(torch.bfloat16) * 2)
        if dispatches:
            family.GRAPH_DISPATCH_IN_FORWARD = True
        return types.SimpleNamespace(
            family=family,
            cell=types.SimpleNamespace(segment=segment),
            order=types.SimpleNamespace(precision=precision),
            autocast=lambda: contextlib.nullcontext(),
        )

    assert predicting._own_attributes(built("bf16", "part", dispatches=False)) == {}
    assert predicting._own_attributes(built("fp32", "part")) == {}
    assert predicting._own_attributes(built("bf16", "")) == {"GRAPH_DISPATCH_IN_FORWARD": False}
    own = predicting._own_attributes(built("bf16", "part"))
    assert list(own) == ["_forward"]
    made = own["_forward"](torch.ones(2))
    assert (made.dtype, made.tolist()) == (torch.float32, [2, 2])


@pytest.mark.parametrize("family", ["sam", "l2cs"])
def test_what_predicts_otherwise_is_refused(family: str, host: HostMemory, tmp_path: pathlib.Path) -> None:
    at = Host(host, family=family, size="tiny" if family == "sam" else "", imgsz=0 if family == "sam" else 64)
    with pytest.raises(ProblemError, match="NOT_PREDICTABLE"):
        at.begin("1", [picture(tmp_path / "a.png", 60, 50)])


# Weights.


def build(host: HostMemory, file: pathlib.Path, **order: Any) -> Host:
    return Host(host, weights_file=str(file), family="resnet", imgsz=64, **order)


def test_weights_come_from_a_checkpoint(host: HostMemory, tmp_path: pathlib.Path) -> None:
    from libreyolo.models.resnet.model import LibreResNet

    torch.manual_seed(7)
    family = LibreResNet(model_path=None, size="18", nb_classes=3, device="cpu")
    family.names = {0: "cat", 1: "dog", 2: "cow"}
    family.model.eval()
    file = tmp_path / "LibreResNet18-cls.pt"
    family.save(str(file))
    source = picture(tmp_path / "a.png", 60, 50)
    (row,) = build(host, file).predict(source, imgsz=64)["results"]
    (theirs,) = family.predict([source], imgsz=64)
    assert row["answer"] == answers.answer(theirs, answers.Form(), source, "a.png")
    assert {each["name"] for each in row["answer"]["top5"]} == {"cat", "dog", "cow"}
    with pytest.raises(ProblemError, match=r"OTHER_WEIGHTS.*model_family 'resnet'"):
        Host(host, weights_file=str(file), family="fomo", imgsz=64)
    with pytest.raises(ProblemError, match="WRONG_WEIGHTS"):
        build(host, file, size="34")


def test_weights_come_from_safetensors(host: HostMemory, tmp_path: pathlib.Path) -> None:
    from samebits_reference import weights

    of = families.build(Order("resnet", imgsz=64, seed=5))
    source = picture(tmp_path / "a.png", 60, 50)
    (theirs,) = of.family.predict([source], imgsz=64)
    file = tmp_path / "weights.safetensors"
    for tensors in (of.weights() | {"constant.0": torch.zeros(2)}, of.module.state_dict()):
        file.write_bytes(weights.encode(tensors))
        (row,) = build(host, file).predict(source, imgsz=64)["results"]
        assert row["answer"] == answers.answer(theirs, answers.Form(), source, "a.png")
    lacking = of.weights()
    del lacking["layer1.0.conv1.weight"]
    file.write_bytes(weights.encode(lacking))
    with pytest.raises(ProblemError, match="MISSING_WEIGHT") as refusal:
        build(host, file)
    assert refusal.value.problems[0].path == "weights/layer1.0.conv1.weight"
    other = of.weights() | {"layer1.0.conv1.weight": torch.zeros(3, 3)}
    file.write_bytes(weights.encode(other))
    with pytest.raises(ProblemError, match="WRONG_WEIGHTS"):
        build(host, file)


def test_what_holds_no_weights_is_refused(host: HostMemory, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "weights.pt"
    with pytest.raises(ProblemError, match=r"BAD_WEIGHTS_FILE.*No such file"):
        build(host, file)
    for content in (b"", b"no weights at all", b"hello\n", b"(a", b"Gello", b"\x10\0\0\0\0\0\0\0{torn"):
        file.write_bytes(content)
        with pytest.raises(ProblemError, match="BAD_WEIGHTS_FILE"):
            build(host, file)
    torch.save([torch.zeros(2)], file)
    with pytest.raises(ProblemError, match=r"BAD_WEIGHTS_FILE.*list"):
        build(host, file)
    torch.save({"model": Runs(tmp_path / "ran")}, file)
    with pytest.raises(ProblemError, match="BAD_WEIGHTS_FILE"):
        build(host, file)
    assert not (tmp_path / "ran").exists()


def test_weights_that_a_loader_only_warns_of_are_refused() -> None:
    logger = logging.getLogger("libreyolo.models")
    handlers = list(logging.getLogger("libreyolo").handlers)
    with checkpoints._no_missing_weights():
        logger.warning("something else")

    def lacking(**_arguments: object) -> None:
        logger.warning("Non-strict load: %d missing", 3)
        logger.warning("Non-strict load: %d unexpected", 2)

    checkpoint = checkpoints.Checkpoint(pathlib.Path("my.pt"), {}, plain=False)
    with pytest.raises(ProblemError, match="WRONG_WEIGHTS: Non-strict load: 3 missing") as refusal:
        checkpoints.construct(lacking, RESNET, "18", checkpoint)
    assert [problem.path for problem in refusal.value.problems] == ["weights_file"]
    with pytest.raises(KeyError), checkpoints._no_missing_weights():
        raise KeyError
    assert logging.getLogger("libreyolo").handlers == handlers


def fails_with(error: Exception) -> Callable[..., Any]:
    def fail(*_arguments: object, **_options: object) -> Any:
        raise error

    return fail


def test_a_loader_that_fails_says_why(tmp_path: pathlib.Path) -> None:
    checkpoint = checkpoints.Checkpoint(tmp_path / "my.pt", {}, plain=False)

    def refused(error: Exception) -> Exception:
        with pytest.raises(type(error) if isinstance(error, MemoryError) else ProblemError) as caught:
            checkpoints.construct(fails_with(error), RESNET, "18", checkpoint)
        return caught.value

    (problem,) = refused(RuntimeError("\nError(s) in loading:\n  one\n  two\nthree\nfour\n")).problems  # type: ignore[attr-defined]
    assert (problem.reason, problem.path) == ("WRONG_WEIGHTS", "weights_file")
    assert problem.summary == "resnet 18 does not take my.pt: Error(s) in loading:"
    assert problem.detail == "one two three"
    assert refused(ValueError()).problems[0].summary.endswith("my.pt: ValueError")  # type: ignore[attr-defined]
    mine, full = ProblemError(Problem("MINE", "no")), MemoryError()
    assert refused(mine) is mine
    assert refused(full) is full


def test_memory_that_runs_out_says_nothing_of_a_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weights.pt"
    torch.save({"model": {}}, file)
    monkeypatch.setattr(torch, "load", fails_with(MemoryError()))
    with pytest.raises(MemoryError):
        checkpoints.read(str(file), RESNET)


def test_what_a_file_says_of_itself(tmp_path: pathlib.Path) -> None:
    def said(plain: bool = False, **content: Any) -> checkpoints.Checkpoint:
        return checkpoints.Checkpoint(tmp_path / "my.pt", content, plain)

    assert [said(size="34").size, said(size=34).size, said().size, said(plain=True, size="34").size] == ["34", "", "", ""]
    for right in (said(), said(model_family="resnet", task="classify"), said(model_family="", task=7)):
        right.check(RESNET)
    said(plain=True, task="detect").check(RESNET)
    with pytest.raises(ProblemError, match=r"OTHER_WEIGHTS: my\.pt is of the task 'detect', not 'classify'"):
        said(task="detect").check(RESNET)
    module = torch.nn.Linear(2, 3)
    tensors = {name: tensor.detach() for name, tensor in module.named_parameters()}
    assert said(plain=True, **tensors).fits(module)
    assert said(plain=True, weight=tensors["weight"]).fits(module)  # whether it is all that is read shows later
    assert said(plain=True, **{"constant.0": torch.ones(1)}).fits(module)
    assert not said(plain=True, weight=tensors["weight"].t()).fits(module)
    assert not said(plain=True, other=torch.ones(1)).fits(module)
    assert not said(**tensors).fits(module)


class Runs:
    """What writes a file when it is unpickled."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (pathlib.Path.touch, (self.path,))


# Answers.


def test_runs_of_a_mask() -> None:
    mask = np.array([[0, 1, 1], [0, 1, 0]])
    assert answers.run_lengths(mask) == {"size": [2, 3], "counts": [2, 3, 1]}
    assert answers.run_lengths(np.ones((2, 2))) == {"size": [2, 2], "counts": [0, 4]}
    assert answers.run_lengths(np.zeros((2, 2))) == {"size": [2, 2], "counts": [4]}


def test_pictures_are_annotated(host: HostMemory, tmp_path: pathlib.Path) -> None:
    source = picture(tmp_path / "a.png", 60, 50)
    at = Host(host, family="fomo", imgsz=96)
    (row,) = at.predict(source, output=tmp_path, annotate="true", conf=0.01)["results"]
    with Image.open(row["answer"]["annotated"]) as drawn:
        assert drawn.size == (60, 50)
    with pytest.raises(ProblemError, match="CANNOT_WRITE"):
        at.predict(source, output=tmp_path / "missing", annotate="true")
    with pytest.raises(ProblemError, match="BAD_SETTING"):
        at.predict(source, annotate="true")


# Calls that stop.


class Family:
    """What keeps things of the call at hand in an attribute, as eomt does, and counts calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._graph_runner: Any = None

    def predict(self, name: str) -> str:
        self.last = name
        made = self._graph_runner.run(torch.zeros(1))
        again = self._graph_runner.run(torch.ones(1))
        self.calls += 1
        if name == "bad":
            raise ValueError(self.last)
        return f"{self.last} {made} {again} {self.mode}"


def stopped(family: Family, name: str) -> Stopped:
    call = Stopped(family, {"mode": "own"}, lambda: family.predict(name))
    call.go_on()
    return call


def test_calls_that_stop_keep_their_own_attributes() -> None:
    family = Family()
    one, two = stopped(family, "one"), stopped(family, "two")
    assert family._graph_runner is None
    assert not hasattr(family, "last")
    two.go_on("a")
    one.go_on("b")
    one.go_on("c")
    two.go_on("d")
    assert (one.wanted, one.result, two.wanted, two.result) == (None, "one b c own", None, "two a d own")
    assert (family._graph_runner, family.last, hasattr(family, "mode")) == (None, "two", False)


def test_a_call_that_fails_or_is_abandoned_leaves_the_family_alone() -> None:
    family = Family()
    bad, left = stopped(family, "bad"), stopped(family, "left")
    bad.go_on("a")
    with pytest.raises(ValueError, match="bad"):
        bad.go_on("b")
    left.abandon()
    left.abandon()
    assert vars(family) == {"calls": 0, "_graph_runner": None}
    assert not any(thread.name == "predict" for thread in threading.enumerate())


# Outputs.


class Pair(NamedTuple):
    one: torch.Tensor
    other: str


def test_a_frame_puts_tensors_where_the_step_gave_them() -> None:
    a, b, c, d = (torch.full((2,), float(n)) for n in range(4))
    output = {"z": [a, None, (b,)], "a": Pair(c, "words"), 3: OrderedDict(x=d), "n": 7}
    filled = Frame(output).fill([tensor + 10 for _, tensor in families.flatten(output)])
    assert list(filled) == ["z", "a", 3, "n"]
    assert isinstance(filled["a"], Pair)
    assert isinstance(filled["z"][2], tuple)
    assert isinstance(filled[3], OrderedDict)
    assert (filled["z"][1], filled["a"].other, filled["n"]) == (None, "words", 7)
    ours = [(name, tensor - 10) for name, tensor in families.flatten(filled)]
    assert all(torch.equal(mine, theirs) for (_, mine), (_, theirs) in zip(ours, families.flatten(output), strict=True))
    with pytest.raises(ValueError, match="3 tensors for 4 places"):
        Frame(output).fill([a, b, c])
