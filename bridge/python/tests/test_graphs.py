from __future__ import annotations

from pathlib import Path

import numpy as np

import samebits


def test_eager_by_default(tiny: samebits.Model, images: np.ndarray) -> None:
    for _ in range(4):
        tiny.predict(images)
    info = tiny.graph_info()
    assert (info.mode, info.captured, info.eager_steps, info.replays) == ("off", False, 4, 0)


def test_captured_at_first_use(data: Path, images: np.ndarray) -> None:
    with samebits.load(data / "tiny", cuda_graph=True) as model:
        assert not model.graph_info().captured
        for _ in range(3):
            model.predict(images)
        info = model.graph_info()
        assert (info.captures, info.replays, info.eager_steps) == (1, 3, 0)
        assert info.nodes > 0


def test_auto_captures_at_the_third_step(data: Path, images: np.ndarray) -> None:
    with samebits.load(data / "tiny", cuda_graph="auto") as model:
        captured = []
        for _ in range(4):
            model.predict(images)
            captured.append(model.graph_info().captured)
        assert captured == [False, False, True, True]
        assert model.graph_info().replays == 2


def test_captured_by_hand_and_released(tiny: samebits.Model, images: np.ndarray) -> None:
    info = tiny.capture_graph()
    assert info.captured
    assert info == tiny.capture_graph()
    tiny.predict(images)
    assert tiny.graph_info().replays == 1
    assert not tiny.release_graphs().captured
    tiny.predict(images)
    info = tiny.graph_info()
    assert (info.replays, info.eager_steps) == (1, 1)


def test_released_graphs_come_again_if_wanted(data: Path, images: np.ndarray) -> None:
    with samebits.load(data / "tiny", cuda_graph=True) as model:
        model.predict(images)
        model.release_graphs()
        model.predict(images)
        assert model.graph_info().captures == 2
