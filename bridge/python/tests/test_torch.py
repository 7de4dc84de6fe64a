from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits

torch = pytest.importorskip("torch")


@pytest.fixture
def tensor(images: np.ndarray) -> Any:
    return torch.from_numpy(images)


def test_tensors_give_tensors(tiny: samebits.Model, images: np.ndarray, tensor: Any) -> None:
    outputs = tiny.predict(tensor)
    for name, expected in tiny.predict(images).items():
        assert isinstance(outputs[name], torch.Tensor)
        assert outputs[name].dtype == torch.float32
        assert not outputs[name].requires_grad
        np.testing.assert_array_equal(outputs[name].numpy(), expected)


def test_equals_torch(tiny: samebits.Model, tensor: Any, data: Path) -> None:
    from weights import read

    w = {name: torch.from_numpy(value.copy()) for name, value in read(data / "tiny" / "weights.safetensors")[0].items()}
    f = torch.nn.functional
    y = f.conv2d(tensor, w["conv.weight"], padding=1)
    y = f.batch_norm(y, w["bn.running_mean"], w["bn.running_var"], w["bn.weight"], w["bn.bias"]).relu()
    y = y + f.conv2d(tensor, w["shortcut.weight"], w["shortcut.bias"])
    torch.testing.assert_close(tiny.predict(tensor)["features"], y, rtol=1e-5, atol=1e-5)


def test_given_tensors_are_written(tiny: samebits.Model, tensor: Any) -> None:
    mine = torch.zeros(1, 4, 8, 8)
    outputs = tiny.predict(tensor, out={"features": mine})
    assert outputs["features"] is mine
    torch.testing.assert_close(mine, tiny.predict(tensor)["features"], rtol=0, atol=0)


def test_tensors_in_place(data: Path, tensor: Any) -> None:
    with samebits.load(data / "tiny") as model:
        expected = model.predict(tensor)["features"]
        buffer = model.input_buffers("torch")["images"]
        buffer.copy_(tensor)
        view = model.predict(buffer, copy=False)["features"]
        torch.testing.assert_close(view, expected, rtol=0, atol=0)
        address = view.data_ptr()
        assert model.predict(buffer, copy=False)["features"].data_ptr() == address
    torch.testing.assert_close(view, expected, rtol=0, atol=0)


def test_strided_outputs(data: Path) -> None:
    left, right = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    with samebits.load(data / "pair") as model:
        for outputs in (model.predict(left, right), model.predict(left, right, copy=False)):
            torch.testing.assert_close(outputs["turned"], (left + right).T, rtol=0, atol=0)


def test_bfloat16(data: Path) -> None:
    x = torch.tensor([1.0, -1.0, 2.5, float("inf")], dtype=torch.bfloat16)
    with samebits.load(data / "bfloat16") as model:
        for output in (model.predict(x)["y"], model.predict(x, copy=False)["y"]):
            assert output.dtype == torch.bfloat16
            torch.testing.assert_close(output, x.relu(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        pytest.param(lambda t: t.double(), samebits.DTypeError, "WRONG_DTYPE", id="float64"),
        pytest.param(lambda t: t.bfloat16(), samebits.DTypeError, "WRONG_DTYPE", id="bfloat16"),
        pytest.param(lambda t: t[:, :2], samebits.ShapeError, "WRONG_SHAPE", id="two channels"),
        pytest.param(
            lambda t: t.to(memory_format=torch.channels_last), samebits.StridesError, "WRONG_STRIDES", id="channels last"
        ),
        pytest.param(lambda t: t.to_sparse(), samebits.StridesError, "WRONG_STRIDES", id="sparse"),
        pytest.param(lambda t: torch.complex(t, t).conj().imag, samebits.StridesError, "WRONG_STRIDES", id="to be negated"),
        pytest.param(lambda t: t.requires_grad_(), samebits.InputError, "REQUIRES_GRAD", id="requires a gradient"),
        pytest.param(lambda t: t.to("meta"), samebits.InputError, "WRONG_DEVICE", id="meta"),
    ],
)
def test_wrong_tensors(
    tiny: samebits.Model, tensor: Any, change: Callable[[Any], Any], kind: type[samebits.InputError], reason: str
) -> None:
    with pytest.raises(kind) as caught:
        tiny.predict(change(tensor))
    assert caught.value.reasons == [reason]


def test_parameters_are_taken_without_gradients(tiny: samebits.Model, tensor: Any) -> None:
    with torch.no_grad():
        tiny.predict(tensor.requires_grad_())


def test_arrays_and_tensors_do_not_mix(data: Path) -> None:
    with samebits.load(data / "pair") as model:
        with pytest.raises(samebits.InputError) as caught:
            model.predict(np.zeros((2, 3), np.float32), torch.zeros(2, 3))
        assert caught.value.reasons == ["MIXED_ARRAYS"]
        with pytest.raises(samebits.InputError) as caught:
            model.predict(torch.zeros(2, 3), torch.zeros(2, 3), out={"sum": np.zeros((2, 3), np.float32)})
        assert caught.value.reasons == ["MIXED_ARRAYS"]


def test_training_on_tensors(data: Path) -> None:
    images, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    with samebits.load_trainer(data / "train") as trainer:
        before = trainer.state()
        outputs = trainer.train_step(images, targets, lr=0.1, outputs=["loss", "grad.scale"])
        logits = images * torch.from_numpy(before["param.scale"]) + torch.from_numpy(before["param.shift"])
        torch.testing.assert_close(outputs["loss"], torch.nn.functional.cross_entropy(logits, targets))
        assert isinstance(outputs["grad.scale"], torch.Tensor)


def test_devices_of_torch(data: Path) -> None:
    with samebits.load(data / "tiny", device=torch.device("cpu")) as model:
        assert model.device == "host"
