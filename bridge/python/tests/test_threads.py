from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import samebits


def test_one_model_in_many_threads(tiny: samebits.Model) -> None:
    random = np.random.default_rng(2)
    inputs = [random.standard_normal((1, 3, 8, 8)).astype(np.float32) for _ in range(8)]
    expected = [tiny.predict(x)["features"] for x in inputs]

    def use(i: int) -> bool:
        return all(np.array_equal(tiny.predict(inputs[i])["features"], expected[i]) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))


def test_many_models_in_many_threads(data: Path, images: np.ndarray) -> None:
    def use(_: int) -> bytes:
        with samebits.load(data / "tiny") as model:
            model.capture_graph()
            return b"".join(model.predict(images)["features"].tobytes() for _ in range(5))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(use, range(16)))) == 1


def test_other_threads_run_during_a_step(data: Path) -> None:
    """The interpreter's lock is not held while the engine works."""
    done = threading.Event()
    counted = 0
    with samebits.load(data / "slow") as model:
        thread = threading.Thread(target=lambda: (model.predict(np.zeros((4096, 4096), np.float32)), done.set()))
        thread.start()
        while not done.wait(0.005):
            counted += 1
        thread.join()
    assert counted > 20


def test_closed_during_a_step(data: Path) -> None:
    """Close waits for the step, which ends well; the next one is refused."""
    model = samebits.load(data / "slow")
    started = threading.Event()
    results: list[object] = []

    def use() -> None:
        x = np.ones((4096, 4096), np.float32)
        started.set()
        results.append(model.predict(x)["y"][0, 0])
        try:
            model.predict(x)
        except samebits.ClosedError as error:
            results.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    started.wait()
    threading.Event().wait(0.3)
    model.close()
    thread.join()
    assert results[0] == 2
    assert isinstance(results[1], samebits.ClosedError)


def test_closed_by_many_threads(data: Path) -> None:
    model = samebits.load(data / "tiny")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: model.close(), range(32)))
    with pytest.raises(samebits.ClosedError):
        model.graph_info()
