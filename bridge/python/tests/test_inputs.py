from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits

GOOD = np.zeros((1, 3, 8, 8), np.float32)


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        pytest.param(GOOD.astype(np.float64), samebits.DTypeError, "WRONG_DTYPE", id="float64"),
        pytest.param(GOOD.astype(np.uint8), samebits.DTypeError, "WRONG_DTYPE", id="uint8"),
        pytest.param(GOOD.astype(np.float16), samebits.DTypeError, "WRONG_DTYPE", id="float16"),
        pytest.param(GOOD.astype(">f4"), samebits.DTypeError, "WRONG_DTYPE", id="other byte order"),
        pytest.param(GOOD.astype(object), samebits.DTypeError, "WRONG_DTYPE", id="objects"),
        pytest.param(np.zeros((1, 3, 8, 9), np.float32), samebits.ShapeError, "WRONG_SHAPE", id="one column more"),
        pytest.param(np.zeros((3, 8, 8), np.float32), samebits.ShapeError, "WRONG_SHAPE", id="without a batch"),
        pytest.param(np.zeros((0, 3, 8, 8), np.float32), samebits.ShapeError, "WRONG_SHAPE", id="an empty batch"),
        pytest.param(np.array(1, np.float32), samebits.ShapeError, "WRONG_SHAPE", id="a scalar"),
        pytest.param(
            np.zeros((1, 8, 8, 3), np.float32).transpose(0, 3, 1, 2),
            samebits.StridesError,
            "WRONG_STRIDES",
            id="channels last",
        ),
        pytest.param(
            np.zeros((1, 3, 8, 16), np.float32)[..., ::2], samebits.StridesError, "WRONG_STRIDES", id="every other column"
        ),
        pytest.param(GOOD[:, :, ::-1], samebits.StridesError, "WRONG_STRIDES", id="upside down"),
        pytest.param(np.broadcast_to(np.float32(0), (1, 3, 8, 8)), samebits.StridesError, "WRONG_STRIDES", id="broadcast"),
        pytest.param(GOOD.tolist(), samebits.InputError, "WRONG_TYPE", id="a list"),
        pytest.param(None, samebits.InputError, "WRONG_TYPE", id="nothing"),
        pytest.param("images", samebits.InputError, "WRONG_TYPE", id="text"),
    ],
)
def test_wrong_arrays_are_refused(tiny: samebits.Model, value: Any, kind: type[samebits.InputError], reason: str) -> None:
    with pytest.raises(kind) as caught:
        tiny.predict(value)
    assert caught.value.reasons == [reason]
    assert caught.value.problems[0].path == "inputs/images"
    assert isinstance(caught.value, ValueError)
    tiny.predict(GOOD)  # and the model goes on


def test_sound_oddities_are_taken(tiny: samebits.Model, images: np.ndarray) -> None:
    expected = tiny.predict(images)["features"]
    read_only = images.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"x" + images.tobytes(), np.uint8)[1:].view(np.float32).reshape(images.shape)
    for odd in (read_only, unaligned, images.view(type("Mine", (np.ndarray,), {}))):
        np.testing.assert_array_equal(tiny.predict(odd)["features"], expected)


def test_all_problems_at_once(data: Path) -> None:
    with samebits.load(data / "pair") as model, pytest.raises(samebits.InputError) as caught:
        model.predict(np.zeros((2, 3)), np.zeros((3, 2), np.float32))
    assert type(caught.value) is samebits.InputError
    assert [(p.path, p.reason) for p in caught.value.problems] == [
        ("inputs/left", "WRONG_DTYPE"),
        ("inputs/right", "WRONG_SHAPE"),
    ]
    assert str(caught.value).startswith("INPUT: inputs/left: WRONG_DTYPE: float64, the recording has float32 (convert it: ")


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ((), ["WRONG_COUNT"]),
        ((GOOD, GOOD), ["WRONG_COUNT"]),
        (({},), ["MISSING_ARRAY"]),
        (({"images": GOOD, "more": GOOD},), ["UNKNOWN_NAME"]),
        (({"imgs": GOOD},), ["UNKNOWN_NAME", "MISSING_ARRAY"]),
    ],
)
def test_wrong_names_and_numbers(tiny: samebits.Model, given: Any, reasons: list[str]) -> None:
    with pytest.raises(samebits.InputError) as caught:
        tiny.predict(*given)
    assert caught.value.reasons == reasons


def outputs() -> dict[str, np.ndarray]:
    return {"features": np.zeros((1, 4, 8, 8), np.float32), "flat": np.zeros((1, 256), np.float32)}


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "reason", "path"),
    [
        ({"features": outputs()["features"].astype(np.float64)}, "WRONG_DTYPE", "outputs/features"),
        ({"features": outputs()["flat"]}, "WRONG_SHAPE", "outputs/features"),
        ({"flat": np.zeros((1, 512), np.float32)[:, ::2]}, "WRONG_STRIDES", "outputs/flat"),
        ({"flat": read_only(outputs()["flat"])}, "READ_ONLY", "outputs/flat"),
        ({"logits": outputs()["flat"]}, "UNKNOWN_NAME", "outputs/logits"),
        ({"flat": [0.0]}, "WRONG_TYPE", "outputs/flat"),
    ],
)
def test_wrong_arrays_for_outputs(tiny: samebits.Model, out: dict[str, Any], reason: str, path: str) -> None:
    with pytest.raises(samebits.InputError) as caught:
        tiny.predict(GOOD, out=out)
    assert (caught.value.reasons, caught.value.problems[0].path) == ([reason], path)


def test_outputs_that_overlap(tiny: samebits.Model) -> None:
    shared = np.zeros(300, np.float32)
    out = {"features": shared[:256].reshape(1, 4, 8, 8), "flat": shared[44:].reshape(1, 256)}
    with pytest.raises(samebits.InputError) as caught:
        tiny.predict(GOOD, out=out)
    assert caught.value.reasons == ["OVERLAP"]


def test_an_output_may_lie_on_an_input(data: Path) -> None:
    left, right = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    with samebits.load(data / "pair") as model:
        model.predict(left, right, out={"sum": left})
    np.testing.assert_array_equal(left, np.full((2, 3), 3))


def test_in_place_and_elsewhere_at_once(tiny: samebits.Model) -> None:
    with pytest.raises(samebits.InputError, match="copy=False"):
        tiny.predict(GOOD, out=outputs(), copy=False)
