from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory import growth
from weights import read

import samebits


@pytest.fixture
def trainer(data: Path) -> Iterator[samebits.Trainer]:
    with samebits.load_trainer(data / "train") as trainer:
        yield trainer


def batch(step: int, size: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(step)
    return random.standard_normal((size, 3)).astype(np.float32), random.integers(0, 3, size)


class Reference:
    """The recording `train` with SGD, Nesterov's momentum and an average, in double precision."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.parameters = {name: weights[name].astype(np.float64) for name in ("scale", "shift")}
        self.average = {name: value.copy() for name, value in self.parameters.items()}
        self.momentum: dict[str, np.ndarray] = {}

    def step(
        self, images: np.ndarray, targets: np.ndarray, lr: list[float], momentum: float, decay: list[float], ema: float
    ) -> float:
        p = self.parameters
        logits = images * p["scale"] + p["shift"]
        shifted = logits - logits.max(1, keepdims=True)
        logp = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        rows = np.arange(len(targets))
        loss = -logp[rows, targets].mean()
        gradient = np.exp(logp)
        gradient[rows, targets] -= 1
        gradient /= len(targets)
        for i, (name, g) in enumerate({"scale": (gradient * images).sum(0), "shift": gradient.sum(0)}.items()):
            g = g + decay[i] * p[name]
            self.momentum[name] = g if name not in self.momentum else momentum * self.momentum[name] + g
            p[name] = p[name] - lr[i] * (g + momentum * self.momentum[name])
            self.average[name] = ema * self.average[name] + (1 - ema) * p[name]
        return float(loss)


@pytest.mark.parametrize("graph", [False, True])
def test_trains(data: Path, graph: bool) -> None:
    reference = Reference(read(data / "train" / "weights.safetensors")[0])
    with samebits.load_trainer(data / "train") as trainer:
        if graph:
            trainer.capture_graph()
        for step in range(6):
            images, targets = batch(step)
            hyper: dict[str, Any] = {
                "lr": [0.1 / (step + 1), 0.05],
                "momentum": 0.9,
                "weight_decay": [0.01, 0.0],
                "ema_decay": 0.5 + step / 20,
            }
            outputs = trainer.train_step(images, targets, **hyper)
            loss = reference.step(images, targets, hyper["lr"], 0.9, hyper["weight_decay"], hyper["ema_decay"])
            np.testing.assert_allclose(outputs["loss"], loss, rtol=1e-5)
        assert trainer.steps == 6
        state = trainer.state()
        info = trainer.graph_info()
    for name in ("scale", "shift"):
        np.testing.assert_allclose(state[f"param.{name}"], reference.parameters[name], rtol=1e-5)
        np.testing.assert_allclose(state[f"momentum.{name}"], reference.momentum[name], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(state[f"ema.{name}"], reference.average[name], rtol=1e-5)
    assert info.graph_count == int(graph)
    assert (info.replays, info.eager_steps) == ((6, 0) if graph else (0, 6))


@pytest.mark.parametrize("cuda_graph", [True, "auto", "AUTO"])
def test_cuda_graph_is_always_safe_to_pass(data: Path, cuda_graph: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is certified on the host: one line says so, and steps run eagerly."""
    with samebits.load_trainer(data / "train", cuda_graph=cuda_graph) as trainer:
        for step in range(4):
            trainer.train_step(*batch(step), lr=0.1)
        info = trainer.graph_info()
    (record,) = caplog.records
    assert record.name == "samebits"
    assert "NO_GPU" in record.getMessage()
    assert "\n" not in record.getMessage()
    assert (info.supported, info.graph_count, info.eager_steps) == (False, 0, 4)


def test_graphs_give_the_same_bits(data: Path) -> None:
    ends = set()
    for graph in (False, True):
        with samebits.load_trainer(data / "train") as trainer:
            if graph:
                trainer.capture_graph()
            losses = [trainer.train_step(*batch(i), lr=0.1, momentum=0.9, ema_decay=0.9)["loss"].tobytes() for i in range(5)]
            ends.add((*losses, *(value.tobytes() for value in trainer.state().values())))
    assert len(ends) == 1


def test_describes_itself(trainer: samebits.Trainer) -> None:
    assert trainer.mode == "train"
    assert trainer.groups == [["scale"], ["shift"]]
    assert trainer.steps == 0
    assert {spec.name for spec in trainer.state_specs} == {
        f"{kind}.{name}" for kind in ("param", "momentum", "ema") for name in ("scale", "shift")
    }
    assert [spec.name for spec in trainer.outputs] == ["loss", "grad.scale", "grad.shift"]
    assert repr(trainer).startswith("<samebits.Trainer tiny-t classify fp32 on host: images float32[4, 3], targets int64[4]")


def test_outputs_by_name(trainer: samebits.Trainer) -> None:
    outputs = trainer.train_step(*batch(0), lr=0.0, outputs=["grad.shift", "loss"])
    assert list(outputs) == ["grad.shift", "loss"]
    assert outputs["loss"].shape == ()
    np.testing.assert_allclose(outputs["grad.shift"].sum(), 0, atol=1e-6)
    assert trainer.train_step(*batch(0), lr=0.0, outputs=[]) == {}
    with pytest.raises(samebits.InputError) as caught:
        trainer.train_step(*batch(0), lr=0.0, outputs=["grad.scale", "logits"])
    assert caught.value.reasons == ["UNKNOWN_NAME"]


def test_a_learning_rate_of_zero_moves_nothing(trainer: samebits.Trainer) -> None:
    before = trainer.state(["param.scale", "param.shift"])
    trainer.train_step(*batch(0), lr=0.0, momentum=0.9)
    for name, value in trainer.state(before).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_short_last_batch(trainer: samebits.Trainer, data: Path) -> None:
    reference = Reference(read(data / "train" / "weights.safetensors")[0])
    trainer.add_recording(data / "train-last" / "recording.pb")
    for step, size in enumerate((4, 4, 2, 4, 2)):
        images, targets = batch(step, size)
        loss = reference.step(images, targets, [0.1, 0.1], 0.9, [0, 0], 0.9)
        given = {"targets": targets, "images": images}
        np.testing.assert_allclose(trainer.train_step(given, lr=0.1, momentum=0.9, ema_decay=0.9)["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(trainer.state()["ema.scale"], reference.average["scale"], rtol=1e-5)
    assert trainer.steps == 5


def test_another_run_cannot_be_added(trainer: samebits.Trainer, data: Path) -> None:
    with pytest.raises(samebits.RecordingError) as caught:
        trainer.add_recording(data / "tiny" / "recording.pb")
    assert caught.value.problems


def wrong_targets(value: int) -> np.ndarray:
    return np.array([0, value, 1, 2])


@pytest.mark.parametrize(
    ("change", "kind", "reason", "path"),
    [
        ({"targets": wrong_targets(3)}, samebits.InputError, "LABEL_OUT_OF_RANGE", "targets[1]"),
        ({"targets": wrong_targets(-1)}, samebits.InputError, "LABEL_OUT_OF_RANGE", "targets[1]"),
        ({"targets": wrong_targets(0).astype(np.int32)}, samebits.DTypeError, "WRONG_DTYPE", "inputs/targets"),
        (
            {"images": np.zeros((0, 3), np.float32), "targets": np.zeros(0, np.int64)},
            samebits.ShapeError,
            "WRONG_SHAPE",
            "inputs/images",
        ),
        ({"images": np.zeros((4, 3))}, samebits.DTypeError, "WRONG_DTYPE", "inputs/images"),
        ({"images": np.zeros((3, 4), np.float32).T}, samebits.StridesError, "WRONG_STRIDES", "inputs/images"),
        ({"lr": [0.1]}, samebits.InputError, "WRONG_HYPER", "hyper/lr"),
        ({"lr": float("nan")}, samebits.InputError, "WRONG_HYPER", "hyper/lr"),
        ({"weight_decay": 0.1}, samebits.InputError, "WRONG_HYPER", "hyper/weight_decay"),
        ({"weight_decay": [0.1, 0.1, 0.1]}, samebits.InputError, "WRONG_HYPER", "hyper/weight_decay"),
        ({"momentum": float("inf")}, samebits.InputError, "WRONG_HYPER", "hyper/momentum"),
        ({"ema_decay": float("nan")}, samebits.InputError, "WRONG_HYPER", "hyper/ema_decay"),
        ({"lr": -0.1}, samebits.InputError, "WRONG_HYPER", "hyper/lr"),
        ({"lr": [0.1, -0.1]}, samebits.InputError, "WRONG_HYPER", "hyper/lr"),
        ({"weight_decay": [0.1, -0.1]}, samebits.InputError, "WRONG_HYPER", "hyper/weight_decay"),
        ({"momentum": -0.9}, samebits.InputError, "WRONG_HYPER", "hyper/momentum"),
        ({"ema_decay": 1.5}, samebits.InputError, "WRONG_HYPER", "hyper/ema_decay"),
    ],
)
def test_bad_input_moves_nothing(
    trainer: samebits.Trainer, change: dict[str, Any], kind: type[samebits.InputError], reason: str, path: str
) -> None:
    images, targets = batch(0)
    arguments = {"images": images, "targets": targets, "lr": 0.1, **change}
    before = trainer.state()
    with pytest.raises(kind) as caught:
        trainer.train_step({name: arguments.pop(name) for name in ("images", "targets")}, **arguments)
    assert caught.value.problems[0].reason == reason
    assert caught.value.problems[0].path == path
    assert trainer.steps == 0
    for name, value in trainer.state().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("change", [{"lr": "a"}, {"lr": None}, {"lr": [None, 0.1]}, {"momentum": "0.9"}, {"ema_decay": []}])
def test_hyperparameters_are_numbers(trainer: samebits.Trainer, change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(TypeError, match=f"{name} is a number"):
        trainer.train_step(*batch(0), **{"lr": 0.1, **change})
    assert trainer.steps == 0


def test_ignored_labels(trainer: samebits.Trainer) -> None:
    images, targets = batch(0)
    targets[1:] = -100
    one = trainer.train_step(images, targets, lr=0.0)["loss"]
    images[1:] = 1000
    np.testing.assert_array_equal(trainer.train_step(images, targets, lr=0.0)["loss"], one)


def test_nan_passes_through(trainer: samebits.Trainer) -> None:
    images, targets = batch(0)
    images[0, 0] = np.nan
    assert np.isnan(trainer.train_step(images, targets, lr=0.1)["loss"])


class TestCheckpoints:
    hyper: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "ema_decay": 0.9}

    def test_resumed_runs_go_on_with_the_same_bits(self, data: Path, tmp_path: Path) -> None:
        with samebits.load_trainer(data / "train") as whole:
            for step in range(6):
                if step == 3:
                    whole.save(tmp_path / "checkpoint")
                whole.train_step(*batch(step), **self.hyper)
            expected = whole.state()
        with samebits.load_trainer(data / "train") as resumed:
            resumed.train_step(*batch(9), **self.hyper)  # another history
            resumed.restore(tmp_path / "checkpoint")
            assert resumed.steps == 3
            for step in range(3, 6):
                resumed.train_step(*batch(step), **self.hyper)
            for name, value in resumed.state().items():
                np.testing.assert_array_equal(value, expected[name], err_msg=name)

    def test_files_are_safetensors(self, trainer: samebits.Trainer, tmp_path: Path) -> None:
        trainer.train_step(*batch(0), **self.hyper)
        trainer.save(str(tmp_path / "checkpoint"))
        tensors, metadata = read(tmp_path / "checkpoint")
        assert metadata["format"] == "samebits-checkpoint"
        assert int(metadata["steps"]) == 1
        for name, value in trainer.state().items():
            np.testing.assert_array_equal(tensors[name], value)

    @pytest.mark.parametrize("cut", [0, 7, 50, -1])
    def test_torn_ones_change_nothing(self, trainer: samebits.Trainer, tmp_path: Path, cut: int) -> None:
        trainer.train_step(*batch(0), **self.hyper)
        trainer.save(tmp_path / "checkpoint")
        trainer.train_step(*batch(1), **self.hyper)
        before = trainer.state()
        with pytest.raises(samebits.CheckpointError) as caught:
            trainer.restore((tmp_path / "checkpoint").read_bytes()[:cut])
        assert caught.value.problems
        assert trainer.steps == 2
        for name, value in trainer.state().items():
            np.testing.assert_array_equal(value, before[name])

    def test_those_of_other_models_are_refused(self, trainer: samebits.Trainer, data: Path) -> None:
        with pytest.raises(samebits.CheckpointError) as caught:
            trainer.restore(data / "tiny" / "weights.safetensors")
        assert "BAD_CHECKPOINT" in caught.value.reasons
        assert "MISSING_WEIGHT" in caught.value.reasons

    def test_missing_folder(self, trainer: samebits.Trainer, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            trainer.save(tmp_path / "missing" / "checkpoint")
        with pytest.raises(FileNotFoundError):
            trainer.restore(tmp_path / "checkpoint")

    FULL = """
import os, resource, signal, sys, samebits
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with samebits.load_trainer(os.environ["DATA"] + "/train") as trainer:
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
    try:
        trainer.save(sys.argv[1])
    except OSError as error:
        print(type(error).__name__, error.errno)
"""

    def test_a_full_disk_leaves_the_old_one(self, trainer: samebits.Trainer, python: Any, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint"
        trainer.save(path)
        old = path.read_bytes()
        done = python(self.FULL, str(path))
        assert done.stdout.split() == ["OSError", "27"], done.stderr
        assert path.read_bytes() == old
        assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]

    def test_weights_to_predict_with(self, trainer: samebits.Trainer, tmp_path: Path) -> None:
        trainer.train_step(*batch(0), **self.hyper)
        state = trainer.state()
        for ema, kind in ((False, "param"), (True, "ema")):
            trainer.save_weights(tmp_path / kind, ema=ema)
            tensors, _ = read(tmp_path / kind)
            assert set(tensors) == {"scale", "shift"}
            for name, value in tensors.items():
                np.testing.assert_array_equal(value, state[f"{kind}.{name}"])


def test_calls_after_close(data: Path, tmp_path: Path) -> None:
    with samebits.load_trainer(data / "train") as trainer:
        pass
    for use in (
        lambda: trainer.train_step(*batch(0), lr=0.1),
        trainer.state,
        trainer.capture_graph,
        lambda: trainer.save(tmp_path / "x"),
        lambda: trainer.restore(b""),
        lambda: trainer.add_recording(b""),
        lambda: trainer.save_weights(tmp_path / "x"),
    ):
        with pytest.raises(samebits.ClosedError, match="the trainer tiny-t is closed"):
            use()


def test_captured_by_hand(trainer: samebits.Trainer) -> None:
    before = trainer.state()
    assert trainer.capture_graph().captured
    for name, value in trainer.state().items():
        np.testing.assert_array_equal(value, before[name])
    assert trainer.steps == 0
    trainer.train_step(*batch(0), lr=0.1)
    assert trainer.graph_info().replays == 1
    assert not trainer.release_graphs().captured


def test_steps_do_not_leak(trainer: samebits.Trainer) -> None:
    images, targets = batch(0)
    assert growth(lambda: trainer.train_step(images, targets, lr=0.0), 1000) < 1 << 16
