"""Predicts pictures by LibreYOLO's own code, with the step in between left to whoever asks: the stages of Process.

docs/wire.md lists them. Several predictions may be under way, each stopped at a step.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from PIL import Image

from samebits_reference import answers, banks, builders, cells, own_paths
from samebits_reference.banks import Spec
from samebits_reference.checkpoints import first_line
from samebits_reference.exhaustion import is_out_of_memory
from samebits_reference.families import Built
from samebits_reference.stopped import Stopped
from samebits_wire import arm_pb2 as wire
from samebits_wire.memory import Memory
from samebits_wire.problems import Kind, Problem, ProblemError

if TYPE_CHECKING:
    from samebits_reference.predict_session import PredictSession, Situation

_HALF = (torch.bfloat16, torch.float16)
_Value = TypeVar("_Value")


@dataclasses.dataclass
class Prediction:
    """Pictures that are predicted together."""

    number: str
    sources: list[pathlib.Path]
    names: list[str]
    places: list[int]  # of sources in the list that was asked for: pictures that cannot be read are left out
    form: answers.Form
    call: Stopped
    at: Situation | None = None  # of the step that it waits for


class Predictions:
    """What one process predicts, with a family that was built."""

    def __init__(self, session: PredictSession) -> None:
        self._session = session
        self._built = session.built
        self._under_way: dict[str, Prediction] = {}
        _check(self._built)
        family = self._built.family
        if self._built.cell.package == "ppocr" and family.charset is None:
            family.charset = own_paths.alphabet()  # seeded weights come with none
        self._own = _own_attributes(self._built)

    def process(self, request: wire.ProcessRequest, memory: Memory) -> wire.ProcessReply:
        """Do a stage."""
        settings = Settings(request)
        match request.stage:
            case "begin":
                return self._begin(settings)
            case "give":
                return self._give(self._find(settings), memory, request.bank)
            case "finish":
                return self._finish(self._find(settings), memory, request.bank)
            case "drop":
                prediction = self._under_way.pop(settings.one("number", str), None)
                if prediction is not None:
                    prediction.call.abandon()
                return wire.ProcessReply(text="{}")
        known = "known: begin, give, finish, drop"
        raise ProblemError(
            Problem("UNKNOWN_STAGE", f"no stage is named {request.stage!r}", "stage", known), Kind.UNIMPLEMENTED
        )

    def abandon(self) -> None:
        """End all that is under way: each has a thread that holds the family."""
        while self._under_way:
            self._under_way.popitem()[1].call.abandon()

    # Stages.

    def _begin(self, settings: Settings) -> wire.ProcessReply:
        began = time.perf_counter_ns()
        number = settings.one("number", str)
        sources = [pathlib.Path(source) for source in settings.all("source")]
        names = settings.all("name")
        if number in self._under_way or not sources or len(sources) != len(names):
            raise ProblemError(Problem("BAD_SETTING", "a number twice, or not as many names as sources", "settings"))
        form = settings.form()
        failed = {place: problem for place, source in enumerate(sources) if (problem := _unopenable(source))}
        while True:
            places = [place for place in range(len(sources)) if place not in failed]
            if not places:
                return _reply({"failed": _failed(failed)})
            good = [sources[place] for place in places]
            prediction = Prediction(
                number, good, [names[place] for place in places], places, form, self._call(good, settings)
            )
            try:
                self._go_on(prediction)
            except Exception as error:
                again = _unloadable(good, error)
                if is_out_of_memory(error) or isinstance(error, ProblemError):
                    raise
                if not again:
                    again = {at: _problem("PREPROCESS_FAILED", source, error) for at, source in enumerate(good)}
                failed |= {places[at]: problem for at, problem in again.items()}
                continue
            break
        self._under_way[number] = prediction
        return self._reply(prediction, {"failed": _failed(failed), "ms": {"preprocess": _ms(began)}})

    def _give(self, prediction: Prediction, memory: Memory, bank: wire.Bank) -> wire.ProcessReply:
        wanted = prediction.call.wanted
        assert wanted is not None
        placed, prediction.at = self._session.situation(memory, bank, "bank")
        (place,) = placed.inputs
        if place.shape != wanted.shape:
            raise ProblemError(Problem("WRONG_SHAPE", f"it is {list(place.shape)}, not {list(wanted.shape)}", "bank/images"))
        place.copy_(wanted)
        return wire.ProcessReply(tensors=[spec.message() for spec in prediction.at.outputs], text="{}")

    def _finish(self, prediction: Prediction, memory: Memory, bank: wire.Bank) -> wire.ProcessReply:
        began = time.perf_counter_ns()
        at = prediction.at
        if at is None or at.frame is None:
            raise ProblemError(Problem("WRONG_ORDER", "its inputs were not given out", "stage"), Kind.WRONG_ORDER)
        made = banks.place(memory, bank, at.outputs, "bank")
        # Copies: LibreYOLO may write into them, and the host reuses the place.
        tensors = [tensor.to(self._built.device, copy=True) for tensor in made]
        if not self._built.cell.segment:
            tensors = [_single(tensor) for tensor in tensors]
        prediction.at = None
        try:
            self._go_on(prediction, at.frame.fill(tensors))
        except Exception as error:
            del self._under_way[prediction.number]
            if is_out_of_memory(error) or isinstance(error, ProblemError):
                raise
            raise ProblemError(_problem("POSTPROCESS_FAILED", prediction.sources[0], error)) from error
        return self._reply(prediction, {"ms": {"postprocess": _ms(began)}})

    # What they share.

    def _call(self, sources: list[pathlib.Path], settings: Settings) -> Stopped:
        family, device = self._built.family, self._built.device
        options = settings.options()

        def predict() -> Any:
            if device.type == "cuda":
                torch.cuda.set_device(device)  # it is a setting of the thread
            return family.predict(sources, **options)

        return Stopped(family, self._own, predict)

    def _go_on(self, prediction: Prediction, given: Any = None) -> None:
        builders.seed_generators(self._built.order.seed)  # whatever else is under way, a rest that draws draws the same
        prediction.call.go_on(given)

    def _reply(self, prediction: Prediction, text: dict[str, Any]) -> wire.ProcessReply:
        wanted = prediction.call.wanted
        if wanted is not None:
            return _reply(text, [Spec.of("images", wanted)])
        del self._under_way[prediction.number]
        began = time.perf_counter_ns()
        rows = zip(prediction.call.result, prediction.sources, prediction.names, prediction.places, strict=True)
        text["results"] = [
            {
                "source": place,
                "width": result.orig_shape[1],
                "height": result.orig_shape[0],
                "answer": answers.answer(result, prediction.form, source, name),
            }
            for result, source, name, place in rows
        ]
        text.setdefault("ms", {})["write"] = _ms(began)
        return _reply(text)

    def _find(self, settings: Settings) -> Prediction:
        number = settings.one("number", str)
        if number not in self._under_way:
            raise ProblemError(Problem("NO_SUCH_PREDICTION", f"nothing is under way as {number!r}", "settings/number"))
        return self._under_way[number]


class Settings:
    """The settings of a stage."""

    def __init__(self, request: wire.ProcessRequest) -> None:
        self._values: dict[str, list[str]] = {}
        for setting in request.settings:
            self._values.setdefault(setting.key, []).append(setting.value)

    def all(self, key: str) -> list[str]:
        """Give all values of a key."""
        return self._values.get(key, [])

    def one(self, key: str, kind: Callable[[str], _Value]) -> _Value:
        """Give the one value of a key."""
        values = self._values.get(key, [])
        try:
            (value,) = values
            return kind(value)
        except ValueError as error:
            raise ProblemError(Problem("BAD_SETTING", f"{values} is no value of it", f"settings/{key}")) from error

    def options(self) -> dict[str, Any]:
        """Give what LibreYOLO's predict is called with: what is left out has LibreYOLO's own value."""
        kinds: Mapping[str, Callable[[str], Any]] = {"conf": float, "iou": float, "max_det": int, "imgsz": int, "batch": int}
        options = {key: self.one(key, kind) for key, kind in kinds.items() if self.all(key)}
        if self.all("classes"):
            options["classes"] = self.one("classes", lambda text: [int(number) for number in text.split(",")])
        return options

    def form(self) -> answers.Form:
        """Give how results are wanted."""
        folder = pathlib.Path(self.one("output", str)) if self.all("output") else None
        masks = self.one("masks", str) if self.all("masks") else "polygon"
        if masks not in ("polygon", "rle", "none"):
            raise ProblemError(Problem("BAD_SETTING", f"masks are no {masks!r}", "settings/masks", "polygon, rle, none"))
        annotate = self.all("annotate") == ["true"]
        if annotate and folder is None:
            raise ProblemError(Problem("BAD_SETTING", "pictures need a folder", "settings/output"))
        return answers.Form(masks, folder, annotate)  # type: ignore[arg-type] # it was compared


def _check(built: Built) -> None:
    """Refuse what does not predict pictures by one step on images."""
    cell = built.cell
    why = cells.unpredictable(cell)
    if not why and not callable(getattr(built.family, "predict", None)):
        why = f"{cell.classname} has no method predict, as LibreYOLO's families have"
    if not why:
        return
    problem = Problem("NOT_PREDICTABLE", f"{cell.family} {cell.task} does not predict pictures here: {why}", "family")
    raise ProblemError(problem, Kind.UNIMPLEMENTED)


def _own_attributes(built: Built) -> dict[str, Any]:
    """Give what a family has otherwise while it predicts."""
    family = built.family
    own: dict[str, Any] = {}
    if not getattr(family, "GRAPH_DISPATCH_IN_FORWARD", False):
        return own
    if not built.cell.segment:
        own["GRAPH_DISPATCH_IN_FORWARD"] = False  # a variant whose step is all of the forward
    elif built.order.precision in ("bf16", "fp16"):
        forward = family._forward

        def with_autocast(images: torch.Tensor) -> torch.Tensor:
            with built.autocast():
                return _single(forward(images))

        own["_forward"] = with_autocast
    return own


def _single(tensor: torch.Tensor) -> torch.Tensor:
    """Give what NumPy can hold, without a loss. LibreYOLO's own predict has no half precision behind the step."""
    return tensor.float() if tensor.dtype in _HALF else tensor


def _unopenable(source: pathlib.Path) -> Problem | None:
    """Say what is wrong with a file that is no picture, by its first bytes."""
    try:
        with Image.open(source) as picture:
            width, height = picture.size
    except Exception as error:  # each format's reader has its own
        return _problem("UNREADABLE_IMAGE", source, error)
    if width < 1 or height < 1:
        return Problem("EMPTY_IMAGE", f"it has {width} by {height} pixels", str(source))
    from libreyolo.utils.source import SourceKind, classify_source

    if classify_source([source]).kind is not SourceKind.IMAGE_BATCH:  # it would fail all that is predicted with it, too
        return Problem("UNREADABLE_IMAGE", "LibreYOLO takes it for a video, by its name", str(source))
    return None


def _unloadable(sources: Sequence[pathlib.Path], error: Exception) -> dict[int, Problem]:
    """Find the pictures that cannot be decoded, after something failed."""
    from libreyolo.utils.image_loader import ImageLoader

    failed = {}
    for place, source in enumerate(sources):
        try:
            ImageLoader.load(source)
        except Exception as why:
            if is_out_of_memory(why):
                raise error from why
            failed[place] = _problem("UNREADABLE_IMAGE", source, why)
    return failed


def _problem(reason: str, source: pathlib.Path, error: BaseException) -> Problem:
    return Problem(reason, first_line(error), str(source))


def _failed(problems: Mapping[int, Problem]) -> list[dict[str, Any]]:
    return [{"source": place, "problem": dataclasses.asdict(problem)} for place, problem in sorted(problems.items())]


def _reply(text: Mapping[str, Any], wanted: Sequence[Spec] = ()) -> wire.ProcessReply:
    words = json.dumps(text, allow_nan=False, separators=(",", ":"))
    return wire.ProcessReply(tensors=[spec.message() for spec in wanted], text=words)


def _ms(began: int) -> float:
    return round((time.perf_counter_ns() - began) / 1e6, 3)
