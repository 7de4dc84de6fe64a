from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits


def test_eager_by_default(tiny: samebits.Model, images: np.ndarray) -> None:
    for _ in range(4):
        tiny.predict(images)
    info = tiny.graph_info()
    assert (info.mode, info.captured, info.eager_steps, info.replays) == ("off", (), 4, 0)
    assert (info.family, info.supported, info.graph_count, info.max_graphs) == ("tiny", False, 0, 8)
    assert (info.eager_fallbacks, info.fallback_reason) == (0, "")


@pytest.mark.parametrize("cuda_graph", [True, "true", "TRUE", np.bool_(True)])
def test_no_graph_without_a_certificate(data: Path, cuda_graph: Any) -> None:
    """On the host there is none for any cell."""
    with pytest.raises(NotImplementedError, match="tiny-t") as caught:
        samebits.load(data / "tiny", cuda_graph=cuda_graph)
    assert isinstance(caught.value, samebits.UncertifiedError)
    assert caught.value.reasons == ["NO_GPU"]


def test_auto_is_eager_without_a_certificate(data: Path, images: np.ndarray, caplog: pytest.LogCaptureFixture) -> None:
    with samebits.load(data / "tiny", cuda_graph="Auto") as model:
        for _ in range(5):
            model.predict(images)
        info = model.graph_info()
    assert (info.mode, info.graph_count, info.eager_steps, info.replays) == ("auto", 0, 5, 0)
    assert info.eager_fallbacks == 3
    assert "NO_GPU" in info.fallback_reason
    assert [problem.reason for problem in info.unsupported] == ["NO_GPU"]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("samebits", logging.WARNING)
    assert "\n" not in record.getMessage()


def test_of_one_step_alone(tiny: samebits.Model, images: np.ndarray) -> None:
    tiny.capture_graph()
    tiny.predict(images)
    tiny.predict(images, cuda_graph=False)
    tiny.predict(images, cuda_graph="auto")
    with pytest.raises(NotImplementedError):
        tiny.predict(images, cuda_graph=True)
    with pytest.raises(samebits.InputError):
        tiny.predict(images, cuda_graph="never")
    info = tiny.graph_info()
    assert (info.replays, info.eager_steps) == (2, 1)


@pytest.mark.parametrize("wrong", [{"imgsz": "640"}, {"imgsz": 8.0}, {"batch": "1"}, {"batch": []}])
def test_sizes_that_are_no_whole_numbers(tiny: samebits.Model, images: np.ndarray, wrong: Any) -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        tiny.capture_graph(**wrong)
    assert tiny.capture_graph(imgsz=np.int64(tiny.imgsz), batch=np.int8(tiny.batch)).captures == 1
    tiny.predict(images)


def test_captured_by_hand_and_released(tiny: samebits.Model, images: np.ndarray) -> None:
    info = tiny.capture_graph()
    (graph,) = info.captured
    assert (graph.shape, graph.dtype, graph.device, graph.replays) == ((1, 3, 8, 8), "float32", "host", 0)
    assert graph.nodes == info.nodes > 0
    assert not info.supported  # what the host records is no CUDA graph
    assert info == tiny.capture_graph()
    tiny.predict(images)
    assert tiny.graph_info().captured[0].replays == 1
    assert not tiny.release_graphs().captured
    tiny.predict(images)
    info = tiny.graph_info()
    assert (info.replays, info.eager_steps) == (1, 1)


def test_captured_by_shape(data: Path) -> None:
    arrays = {wide: np.arange(2.0 * wide, dtype=np.float32).reshape(2, wide) for wide in (3, 5)}
    with samebits.load(data / "pair") as model:
        model.add_recording(data / "pair-wide")
        assert model.capture_graph(imgsz=5, batch=1, dtype=np.float32).captured[0].shape == (2, 5)
        assert model.capture_graph(dtype="float32").graph_count == 2
        for wide in (3, 5, 5, 3):
            outputs = model.predict(arrays[wide], arrays[wide])
            np.testing.assert_array_equal(outputs["sum"], arrays[wide] * 2)
            np.testing.assert_array_equal(outputs["turned"], arrays[wide].T * 2)
        assert [graph.replays for graph in model.graph_info().captured] == [2, 2]
        for wrong in ({"imgsz": 7}, {"batch": 9}, {"dtype": "bfloat16"}):
            with pytest.raises(samebits.InputError) as caught:
                model.capture_graph(**wrong)
            assert caught.value.reasons == ["NO_RECORDING"]
        buffers = model.input_buffers(recording=1)
        for buffer in buffers.values():
            buffer[...] = arrays[5]
        np.testing.assert_array_equal(model.predict(buffers, copy=False)["sum"], arrays[5] * 2)
        with pytest.raises(samebits.ShapeError):
            model.predict(arrays[3], arrays[5])


def test_only_recordings_to_predict_with(data: Path) -> None:
    with samebits.load(data / "pair") as model, pytest.raises(samebits.RecordingError) as caught:
        model.add_recording(data / "train")
    assert caught.value.reasons == ["WRONG_MODE"]


def test_a_graph_that_serves_nobody_is_said_once(data: Path) -> None:
    with samebits.load(data / "pair") as model:
        model.add_recording(data / "pair-wide")
        model.capture_graph(imgsz=5)
        small = np.zeros((2, 3), np.float32)
        with pytest.warns(samebits.SamebitsWarning, match="GRAPH_UNUSED"):
            model.predict(small, small)
        model.predict(small, small)
    with pytest.warns(samebits.SamebitsWarning, match="GRAPH_UNUSED"), samebits.load(data / "tiny") as model:
        model.capture_graph()


def test_nothing_else_sets_the_flag(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables, files and declarations: the flag stays false, and `True` is refused."""
    for name in ("SUPPORTS_CUDA_GRAPH", "SAMEBITS_SUPPORTS_CUDA_GRAPH", "SAMEBITS_CUDA_GRAPH", "SAMEBITS_ENGINE_BUILD"):
        monkeypatch.setenv(name, "true")
    claim = tmp_path / "tiny.dsse.json"
    claim.write_text('{"supports_cuda_graph":true}\n')
    shutil.copytree(data / "tiny", tmp_path / "tiny")
    (tmp_path / "tiny" / "certificate.json").write_text('{"supports_cuda_graph":true}')
    for certificates in (None, claim, tmp_path, tmp_path / "none"):
        for variable in ("", str(tmp_path)):
            monkeypatch.setenv("SAMEBITS_CERTIFICATES", variable)
            with pytest.raises(samebits.UncertifiedError):
                samebits.load(tmp_path / "tiny", cuda_graph=True, certificates=certificates)
            with samebits.load(tmp_path / "tiny", certificates=certificates) as model:
                assert not model.graph_info().supported
