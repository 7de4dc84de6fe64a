from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import samebits


def convolve(x: np.ndarray, w: np.ndarray, padding: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def reference(images: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """Compute what the recording `tiny` does, in double precision."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    channel = {name: value[None, :, None, None] for name, value in w.items() if value.ndim == 1}
    x = images.astype(np.float64)
    y = convolve(x, w["conv.weight"], 1)
    y = (y - channel["bn.running_mean"]) / np.sqrt(channel["bn.running_var"] + 1e-5) * channel["bn.weight"] + channel[
        "bn.bias"
    ]
    return np.maximum(y, 0) + convolve(x, w["shortcut.weight"], 0) + channel["shortcut.bias"]


def test_gives_what_was_recorded(tiny: samebits.Model, images: np.ndarray, data: Path) -> None:
    from weights import read

    outputs = tiny.predict(images)
    expected = reference(images, read(data / "tiny" / "weights.safetensors")[0])
    np.testing.assert_allclose(outputs["features"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(outputs["flat"], outputs["features"].reshape(1, 256))
    assert list(outputs) == ["features", "flat"]
    assert all(type(array) is np.ndarray and array.dtype == np.float32 for array in outputs.values())


def test_outputs_belong_to_the_caller(tiny: samebits.Model, images: np.ndarray) -> None:
    first = tiny.predict(images)["features"]
    kept = first.copy()
    second = tiny.predict(images * 2)["features"]
    np.testing.assert_array_equal(first, kept)
    assert not np.array_equal(first, second)


def test_every_way_gives_the_same_bits(data: Path, images: np.ndarray) -> None:
    results = {}
    for way in (False, True):
        with samebits.load(data / "tiny") as model:
            if way:
                model.capture_graph()
            for repeat in range(4):
                results[way, repeat] = model.predict(images)["features"].tobytes()
            results[way, "names"] = model({"images": images})["features"].tobytes()
            results[way, "in place"] = model.predict(images, copy=False)["features"].tobytes()
            buffer = model.input_buffers()["images"]
            buffer[...] = images
            results[way, "input in place"] = model.predict(buffer)["features"].tobytes()
    assert len(set(results.values())) == 1, results.keys()


def test_takes_bytes_and_paths(data: Path, images: np.ndarray) -> None:
    recording, weights = data / "tiny" / "recording.pb", data / "tiny" / "weights.safetensors"
    expected = None
    for given in (
        (str(recording), str(weights)),
        (recording, weights),
        (recording.read_bytes(), bytearray(weights.read_bytes())),
        (memoryview(recording.read_bytes()), weights),
        (data / "tiny", weights),
    ):
        with samebits.load(*given) as model:
            output = model.predict(images)["features"]
        expected = output if expected is None else expected
        np.testing.assert_array_equal(output, expected)


def test_describes_itself(tiny: samebits.Model) -> None:
    assert (tiny.family, tiny.size, tiny.task, tiny.mode, tiny.precision, tiny.batch) == (
        "tiny",
        "t",
        "classify",
        "predict",
        "fp32",
        1,
    )
    assert tiny.device == "host"
    assert tiny.peak_bytes > 0
    assert len(tiny.digest) == 64
    assert "host.cpu" in tiny.environment
    assert [str(spec) for spec in tiny.inputs] == ["images float32[1, 3, 8, 8]"]
    assert tiny.outputs[1] == samebits.TensorSpec("flat", "float32", (1, 256), (256, 1))
    assert repr(tiny) == "<samebits.Model tiny-t classify fp32 on host: images float32[1, 3, 8, 8]>"


def test_several_inputs_and_strided_outputs(data: Path) -> None:
    left = np.arange(6, dtype=np.float32).reshape(2, 3)
    right = np.full((2, 3), 0.5, np.float32)
    with samebits.load(data / "pair") as model:
        assert not model.outputs[1].contiguous
        for outputs in (
            model.predict(left, right),
            model.predict({"right": right, "left": left}),
            model.predict(left, right, copy=False),
        ):
            np.testing.assert_array_equal(outputs["sum"], left + right)
            np.testing.assert_array_equal(outputs["turned"], (left + right).T)


def test_writes_to_given_arrays(tiny: samebits.Model, images: np.ndarray) -> None:
    expected = tiny.predict(images)
    mine = np.zeros((1, 4, 8, 8), np.float32)
    outputs = tiny.predict(images, out={"features": mine})
    assert outputs["features"] is mine
    np.testing.assert_array_equal(mine, expected["features"])
    np.testing.assert_array_equal(outputs["flat"], expected["flat"])


def test_arrays_in_place_follow_the_next_step(tiny: samebits.Model, images: np.ndarray) -> None:
    view = tiny.predict(images, copy=False)["features"]
    first = view.copy()
    tiny.predict(images * 3)
    assert not np.array_equal(view, first)
    assert view.base is not None


def test_input_buffers_are_the_models_own(tiny: samebits.Model, images: np.ndarray) -> None:
    buffer = tiny.input_buffers()["images"]
    again = tiny.input_buffers()["images"]
    buffer[...] = images
    np.testing.assert_array_equal(again, images)
    assert buffer.ctypes.data == again.ctypes.data


def test_new_weights(data: Path, images: np.ndarray) -> None:
    original = (data / "tiny" / "weights.safetensors").read_bytes()
    doubled = bytearray(original)
    start = 8 + int.from_bytes(original[:8], "little")
    doubled[start:] = (np.frombuffer(original[start:], np.float32) * 2).tobytes()
    with samebits.load(data / "tiny") as model:
        model.capture_graph()
        first = model.predict(images)["features"]
        model.load_weights(doubled)
        second = model.predict(images)["features"]
        model.load_weights(data / "tiny" / "weights.safetensors")
        third = model.predict(images)["features"]
        assert model.graph_info().captures == 1
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_nan_and_infinity_pass_through(data: Path) -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0, 2.0], np.float32).reshape(2, 3)
    with samebits.load(data / "pair") as model:
        total = model.predict(values, np.zeros((2, 3), np.float32))["sum"]
    np.testing.assert_array_equal(total, values)
    assert np.isnan(total[0, 0])


class TestBFloat16:
    bits = np.array([0x3F80, 0xBF80, 0x4000, 0x7F80], np.uint16)  # 1, -1, 2, infinity
    expected = np.array([0x3F80, 0x0000, 0x4000, 0x7F80], np.uint16)

    def test_raw_bits(self, data: Path) -> None:
        with samebits.load(data / "bfloat16") as model:
            mine = np.zeros(4, np.uint16)
            model.predict(self.bits, out={"y": mine})
        np.testing.assert_array_equal(mine, self.expected)

    def test_ml_dtypes(self, data: Path) -> None:
        ml_dtypes = pytest.importorskip("ml_dtypes")
        with samebits.load(data / "bfloat16") as model:
            output = model.predict(self.bits.view(ml_dtypes.bfloat16))["y"]
            in_place = model.predict(self.bits, copy=False)["y"]
            assert model.outputs[0].numpy_dtype == ml_dtypes.bfloat16
            assert output.dtype == in_place.dtype == ml_dtypes.bfloat16
            np.testing.assert_array_equal(output.view(np.uint16), self.expected)
            np.testing.assert_array_equal(in_place.view(np.uint16), self.expected)

    def test_says_what_is_missing_without_ml_dtypes(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
        with samebits.load(data / "bfloat16") as model, pytest.raises(samebits.InputError) as caught:
            model.predict(self.bits)
        assert caught.value.reasons == ["NO_BFLOAT16"]
        assert "ml_dtypes" in caught.value.problems[0].detail
