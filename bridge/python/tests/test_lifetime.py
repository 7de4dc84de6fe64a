from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory import growth, resident

import samebits

MIB = 1 << 20
KIB = 1 << 10


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda m, x: m.predict(x), id="predict"),
        pytest.param(lambda m, x: m.predict(x, copy=False), id="predict in place"),
        pytest.param(lambda m, x: m(x), id="call"),
        pytest.param(lambda m, x: m.capture_graph(), id="capture_graph"),
        pytest.param(lambda m, x: m.graph_info(), id="graph_info"),
        pytest.param(lambda m, x: m.release_graphs(), id="release_graphs"),
        pytest.param(lambda m, x: m.input_buffers(), id="input_buffers"),
        pytest.param(lambda m, x: m.load_weights(b""), id="load_weights"),
    ],
)
def test_calls_after_close(data: Path, images: np.ndarray, use: Any) -> None:
    with samebits.load(data / "tiny") as model:
        assert not model.closed
    assert model.closed
    with pytest.raises(samebits.ClosedError, match="the model tiny-t is closed") as caught:
        use(model, images)
    assert isinstance(caught.value, RuntimeError)
    assert repr(model).endswith(", closed>")
    model.close()


@pytest.mark.parametrize("make", [pickle.dumps, copy.deepcopy])
def test_neither_pickled_nor_copied(data: Path, images: np.ndarray, make: Any) -> None:
    """The engine's number of a model may be that of another one in another process."""
    with samebits.load(data / "tiny") as model, samebits.load_trainer(data / "train") as trainer:
        with pytest.raises(TypeError, match="a model of Samebits cannot be pickled"):
            make(model)
        with pytest.raises(TypeError, match="a trainer of Samebits cannot be pickled"):
            make(trainer)
        gc.collect()
        assert model.predict(images)


def test_closed_by_an_error_too(data: Path) -> None:
    model = samebits.load(data / "tiny")
    with pytest.raises(ZeroDivisionError), model:
        _ = 1 // 0
    assert model.closed


def test_forgotten_models_are_reported_and_freed(data: Path) -> None:
    model = samebits.load(data / "slow")  # 128 MiB
    before = resident()
    model.predict(np.zeros((4096, 4096), np.float32), copy=False)
    used = resident()
    with pytest.warns(ResourceWarning, match="unclosed Samebits model"):
        del model
    samebits.load(data / "tiny").close()
    assert used - before > 100 * MIB
    assert resident() < before + 100 * MIB


def test_arrays_in_place_outlive_the_model(data: Path, images: np.ndarray) -> None:
    with samebits.load(data / "tiny") as model:
        expected = model.predict(images)["features"]
        outputs = model.predict(images, copy=False)
        buffers = model.input_buffers()
    np.testing.assert_array_equal(outputs["features"], expected)
    kept = outputs["flat"][0, 5:]
    del outputs
    gc.collect()
    np.testing.assert_array_equal(kept, expected.reshape(-1)[5:])
    buffers["images"][...] = 0


def test_memory_is_free_after_close(data: Path) -> None:
    def load() -> None:
        with samebits.load(data / "slow") as model:
            model.input_buffers()["x"][...] = 1

    load()
    before = resident()
    for _ in range(3):
        load()
    assert resident() < before + 64 * MIB


def test_steps_do_not_leak(tiny: samebits.Model, images: np.ndarray) -> None:
    assert growth(lambda: tiny.predict(images), 1000) < 64 * KIB
    assert growth(lambda: tiny.predict(images, copy=False), 1000) < 64 * KIB


def test_errors_do_not_leak(tiny: samebits.Model) -> None:
    wrong = np.zeros((1, 3, 8, 8))

    def refused() -> None:
        with pytest.raises(samebits.DTypeError):
            tiny.predict(wrong)

    assert growth(refused, 1000) < 64 * KIB


def test_errors_of_the_engine_do_not_leak(data: Path) -> None:
    recording, weights = (data / "tiny" / "recording.pb").read_bytes()[:-1], b""

    def refused() -> None:
        with pytest.raises(samebits.RecordingError):
            samebits.load(recording, weights)

    assert growth(refused, 500) < 64 * KIB


def test_models_do_not_leak(data: Path, images: np.ndarray) -> None:
    recording, weights = (data / "tiny" / "recording.pb").read_bytes(), (data / "tiny" / "weights.safetensors").read_bytes()

    def use() -> None:
        with samebits.load(recording, weights) as model:
            model.predict(images)

    assert growth(use, 50) < 256 * KIB
