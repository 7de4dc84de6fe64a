"""On a GPU: run with `-m gpu`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
DEVICE = "cuda:0"


@pytest.fixture
def pair(data: Path) -> Iterator[samebits.Model]:
    with samebits.load(data / "pair", device=DEVICE) as model:
        yield model


def numbers(seed: float) -> tuple[Any, Any]:
    return torch.full((2, 3), float(seed), device=DEVICE), torch.arange(6.0, device=DEVICE).reshape(2, 3)


def same(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_every_way_gives_the_same_bits(pair: samebits.Model) -> None:
    left, right = numbers(0.1)
    expected = (left + right).cpu()
    ways = {
        "numpy": torch.from_numpy(pair.predict(left.cpu().numpy(), right.cpu().numpy())["sum"]),
        "torch on the CPU": pair.predict(left.cpu(), right.cpu())["sum"],
        "pinned": pair.predict(left.cpu().pin_memory(), right.cpu().pin_memory())["sum"],
        "torch on the GPU": pair.predict(left, right)["sum"].cpu(),
        "in place": pair.predict(left, right, copy=False)["sum"].cpu(),
    }
    for way, value in ways.items():
        assert torch.equal(value, expected), way


def test_outputs_stay_on_the_device(pair: samebits.Model) -> None:
    left, right = numbers(1)
    outputs = pair.predict(left, right)
    assert all(value.device == torch.device(DEVICE) for value in outputs.values())
    same(outputs["turned"], (left + right).T)
    mine = torch.empty(3, 2, device=DEVICE)
    assert pair.predict(left, right, out={"turned": mine})["turned"] is mine
    same(mine, (left + right).T)


def test_in_order_with_torchs_stream(pair: samebits.Model) -> None:
    """Nothing is synchronised here but by the comparison at the end."""
    stream = torch.cuda.Stream()
    results = []
    with torch.cuda.stream(stream):
        for i in range(50):
            torch.cuda._sleep(2_000_000)  # the input is written late
            left = torch.full((2, 3), float(i), device=DEVICE)
            right = left * 2
            total = pair.predict(left, right)["sum"]
            results.append(total + 1)  # and the output read at once
            del left, right  # torch gives their memory to the next round
    stream.synchronize()
    for i, total in enumerate(results):
        same(total, torch.full((2, 3), i * 3 + 1.0, device=DEVICE))


def test_in_order_on_many_streams(pair: samebits.Model) -> None:
    failures: list[int] = []

    def use(seed: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(100):
                left, right = numbers(seed * 1000 + i)
                if not torch.equal(pair.predict(left, right)["sum"], left + right):
                    failures.append(seed)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_input_buffers(pair: samebits.Model) -> None:
    buffers = pair.input_buffers()
    left, right = numbers(3)
    buffers["left"].copy_(left)
    buffers["right"].copy_(right)
    same(pair.predict(buffers["left"], buffers["right"])["sum"], left + right)
    address = buffers["left"].data_ptr()
    assert pair.input_buffers()["left"].data_ptr() == address
    with pytest.raises(samebits.InputError) as caught:
        pair.input_buffers("numpy")
    assert caught.value.reasons == ["WRONG_DEVICE"]


def test_arrays_in_place_outlive_the_model(data: Path) -> None:
    left, right = numbers(4)
    with samebits.load(data / "pair", device=DEVICE) as model:
        total = model.predict(left, right, copy=False)["sum"]
    same(total, left + right)


def test_host_arrays_right_after_tensors(pair: samebits.Model) -> None:
    left, right = numbers(5)
    for i in range(20):
        on_device = pair.predict(left + i, right)["sum"]
        on_host = pair.predict((left - i).cpu().numpy(), right.cpu().numpy())["sum"]
        same(on_device, left + i + right)
        np.testing.assert_array_equal(on_host, (left - i + right).cpu().numpy())


def test_wrong_places(pair: samebits.Model, data: Path) -> None:
    left, right = numbers(6)
    for given, reasons in (
        ((left, right.cpu()), ["MIXED_ARRAYS"]),
        ((left.double(), right), ["WRONG_DTYPE"]),
        ((left.T, right), ["WRONG_SHAPE"]),
    ):
        with pytest.raises(samebits.InputError) as caught:
            pair.predict(*given)
        assert caught.value.reasons == reasons
    with samebits.load(data / "pair") as host, pytest.raises(samebits.InputError) as caught:
        host.predict(left, right)
    assert set(caught.value.reasons) == {"WRONG_DEVICE"}
    with pytest.raises(samebits.InputError) as caught:
        pair.predict(left.cpu(), right.cpu(), copy=False)
    assert caught.value.reasons == ["WRONG_DEVICE"]


def test_not_inside_a_capture_of_torch(pair: samebits.Model) -> None:
    left, right = numbers(7)
    pair.predict(left, right)
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        with pytest.raises(samebits.InputError) as caught:
            pair.predict(left, right)
        _ = left + right  # torch warns of empty graphs
    assert caught.value.reasons == ["CAPTURING"]
    same(pair.predict(left, right)["sum"], left + right)


def test_bfloat16(data: Path) -> None:
    x = torch.tensor([1.0, -1.0, 2.5, float("inf")], dtype=torch.bfloat16, device=DEVICE)
    with samebits.load(data / "bfloat16", device=DEVICE) as model:
        for output in (model.predict(x)["y"], model.predict(x, copy=False)["y"]):
            same(output, x.relu())


def test_training(data: Path) -> None:
    random = torch.Generator().manual_seed(1)
    batches = [(torch.randn(4, 3, generator=random), torch.randint(0, 3, (4,), generator=random)) for _ in range(6)]
    ends = []
    for place in ("cpu", DEVICE):
        with samebits.load_trainer(data / "train", device=DEVICE) as trainer:
            trainer.add_recording(data / "train-last" / "recording.pb")
            losses = []
            for i, (images, targets) in enumerate(batches):
                rows = 2 if i % 3 == 2 else 4
                torch.cuda._sleep(50_000_000)  # what the step is given comes late, and late for a capture, too
                step = trainer.train_step(
                    images[:rows].to(place), targets[:rows].to(place), lr=0.1 / (i + 1), momentum=0.9, ema_decay=0.9
                )
                losses.append(step["loss"])
            ends.append([*(loss.item() for loss in losses), *(value.tobytes() for value in trainer.state().values())])
    assert ends[0] == ends[1]


def test_a_wrong_label_on_the_device_makes_the_loss_nan(data: Path) -> None:
    with samebits.load_trainer(data / "train", device=DEVICE) as trainer:
        images, targets = torch.zeros(4, 3, device=DEVICE), torch.tensor([0, 1, 2, 7], device=DEVICE)
        assert trainer.train_step(images, targets, lr=0.0)["loss"].isnan()
        targets[3] = 0
        assert trainer.train_step(images, targets, lr=0.0)["loss"].isfinite()


def test_steps_do_not_leak(pair: samebits.Model) -> None:
    left, right = numbers(8)
    for _ in range(1000):
        pair.predict(left, right)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    for _ in range(20000):
        pair.predict(left, right)
    torch.cuda.synchronize()
    # PyTorch takes memory by 2 MiB, and rounds up to 512 bytes: one tensor a step would be 10 MiB.
    assert before - torch.cuda.mem_get_info()[0] < 8 << 20


def test_no_graph_without_a_certificate(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NotImplementedError) as caught:
        samebits.load(data / "pair", device=DEVICE, cuda_graph=True)
    assert caught.value.reasons == ["NO_CERTIFICATE"]
    left, right = numbers(9)
    with samebits.load(data / "pair", device=DEVICE, cuda_graph="auto") as model:
        for _ in range(4):
            same(model.predict(left, right)["sum"], left + right)
        with pytest.raises(samebits.UncertifiedError):
            model.capture_graph()
        assert model.graph_info().graph_count == 0
    assert len(caplog.records) == 1


def test_the_callers_device_stays_current(pair: samebits.Model) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    left, right = numbers(10)
    with torch.cuda.device(1):
        for _ in range(3):
            same(pair.predict(left, right)["sum"], left + right)
            assert torch.cuda.current_device() == 1
            assert torch.zeros(1, device="cuda").device.index == 1
