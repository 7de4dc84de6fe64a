"""Arrays as the engine sees them: checked against the recording, then as addresses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np

from ._calls import View
from ._errors import InputError, Problem, wrong_input

if TYPE_CHECKING:
    import torch

Kind = Literal["numpy", "torch"]
Array = Union["np.ndarray[Any, Any]", "torch.Tensor"]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its name, its element type by PyTorch's name, its shape, and its strides in elements.

    The strides are those that it has in the model's memory. Arrays that are passed must be contiguous.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return 0 in self.shape
            expected *= size
        return True

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy type. For ``bfloat16`` it is that of the package ml_dtypes, and an InputError without it."""
        return numpy_dtype(self)

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


def specs(described: list[dict[str, Any]]) -> tuple[TensorSpec, ...]:
    """Read what the engine says of inputs or outputs."""
    return tuple(TensorSpec(d["name"], d["dtype"], tuple(d["sizes"]), tuple(d["strides"])) for d in described)


def bfloat16() -> np.dtype[Any] | None:
    """Give ml_dtypes' bfloat16, if that package is installed."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(spec: TensorSpec) -> np.dtype[Any]:
    """Give the NumPy type of a tensor."""
    if spec.dtype != "bfloat16":
        return np.dtype(spec.dtype)
    found = bfloat16()
    if found is None:
        problem = Problem(
            "NO_BFLOAT16", f"{spec.name} is bfloat16, which NumPy alone does not have", spec.name,
            "install ml_dtypes, or pass torch tensors, or give raw bits as uint16",
        )  # fmt: skip
        raise InputError(str(problem), [problem])
    return found


def takes(spec: TensorSpec, dtype: np.dtype[Any]) -> bool:
    """Say whether an array of this type has the elements of a tensor. Raw bits stand for bfloat16, which NumPy lacks."""
    if spec.dtype == "bfloat16":
        known = bfloat16()
        return dtype == np.uint16 or (known is not None and dtype == known)
    return dtype == np.dtype(spec.dtype) and dtype.isnative


def kind_of(value: Any, path: str) -> Kind:
    """Tell NumPy arrays from torch tensors, without importing torch."""
    if isinstance(value, np.ndarray):
        return "numpy"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return "torch"
    problem = Problem("WRONG_TYPE", f"{type(value).__name__} is no NumPy array and no torch tensor", path)
    raise InputError(str(problem), [problem])


class Checker:
    """Collects what is wrong with the arrays of a call, so that one error names it all."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.problems: list[Problem] = []

    def add(self, reason: str, path: str, summary: str, detail: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(reason, summary, path, detail))

    def finish(self) -> None:
        """Raise an InputError if anything is wrong."""
        if self.problems:
            raise wrong_input(self.problems)

    def numpy(self, spec: TensorSpec, array: np.ndarray[Any, Any], path: str, writeable: bool = False) -> int:
        """Check an array of the host and give its address."""
        dtype = array.dtype
        if not takes(spec, dtype):
            what = str(dtype) if dtype.isnative else f"{dtype} of the other byte order"
            self.add("WRONG_DTYPE", path, f"{what}, the recording has {spec.dtype}", f"convert it: .astype({spec.dtype!r})")
        if array.shape != spec.shape:
            self.add("WRONG_SHAPE", path, f"shape {list(array.shape)}, the recording has {list(spec.shape)}")
        elif not array.flags.c_contiguous:
            self.add(
                "WRONG_STRIDES",
                path,
                f"not contiguous: strides of {list(array.strides)} bytes",
                "numpy.ascontiguousarray copies it",
            )
        if writeable and not array.flags.writeable:
            self.add("READ_ONLY", path, "the array cannot be written to")
        return address_of(array)

    def torch(self, spec: TensorSpec, tensor: torch.Tensor, path: str) -> int:
        """Check a tensor and give its address."""
        import torch

        if tensor.layout != torch.strided:
            self.add("WRONG_STRIDES", path, f"a tensor of layout {tensor.layout}", "call .to_dense()")
            return 0
        if tensor.dtype != getattr(torch, spec.dtype):
            self.add(
                "WRONG_DTYPE",
                path,
                f"{str(tensor.dtype)[6:]}, the recording has {spec.dtype}",
                f"convert it: .to(torch.{spec.dtype})",
            )
        if tuple(tensor.shape) != spec.shape:
            self.add("WRONG_SHAPE", path, f"shape {list(tensor.shape)}, the recording has {list(spec.shape)}")
        elif not tensor.is_contiguous():
            self.add("WRONG_STRIDES", path, f"not contiguous: strides {list(tensor.stride())}", "call .contiguous()")
        elif tensor.is_neg():
            self.add("WRONG_STRIDES", path, "a view whose elements are still to be negated", "call .resolve_neg()")
        if tensor.requires_grad and torch.is_grad_enabled():
            self.add(
                "REQUIRES_GRAD",
                path,
                "the tensor requires a gradient, and none is computed here",
                "call .detach() or use torch.no_grad()",
            )
        if tensor.device.type not in ("cpu", "cuda") or (tensor.device.type == "cuda" and str(tensor.device) != self.device):
            self.add(
                "WRONG_DEVICE",
                path,
                f"the tensor is on {tensor.device}, the model on {self.device}",
                f"move it: .to({torch_device(self.device)!r})",
            )
            return 0
        return tensor.data_ptr()


def address_of(array: Any) -> int:
    """Give the address of an array's first element."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return int(array.data_ptr())


def torch_device(device: str) -> str:
    """Give torch's name of a device of ours."""
    return "cpu" if device == "host" else device


def empty(spec: TensorSpec, kind: Kind, device: str) -> Array:
    """Make an array for an output: contiguous on the host, laid out as in the model on CUDA."""
    if kind == "numpy":
        return np.empty(spec.shape, numpy_dtype(spec))
    import torch

    dtype = getattr(torch, spec.dtype)
    if device == "host":
        return torch.empty(spec.shape, dtype=dtype)
    return torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=device)


_WIRE_TYPES = {"bool": "|b1", "uint8": "|u1", "int8": "|i1", "bfloat16": "<i2"}


class _Memory:
    """Memory of a model, as NumPy and torch take it. It keeps the model's memory alive."""

    def __init__(self, spec: TensorSpec, address: int, view: View, cuda: bool) -> None:
        self.view = view
        dtype = np.dtype(_WIRE_TYPES.get(spec.dtype, spec.dtype))
        strides = None if spec.contiguous else tuple(stride * dtype.itemsize for stride in spec.strides)
        interface = {"version": 3, "typestr": dtype.str, "shape": spec.shape, "strides": strides, "data": (address, False)}
        setattr(self, "__cuda_array_interface__" if cuda else "__array_interface__", interface)


def over(spec: TensorSpec, address: int, view: View, kind: Kind, device: str) -> Array:
    """Make an array that lies in a model's memory."""
    if address == 0:  # an empty one, or an input that nothing reads
        return np.zeros(spec.shape, numpy_dtype(spec)) if kind == "numpy" else _zeros(spec, device)
    memory = _Memory(spec, address, view, device != "host")
    if kind == "numpy":
        array: np.ndarray[Any, Any] = np.asarray(memory)
        return array.view(numpy_dtype(spec)) if spec.dtype == "bfloat16" else array
    import torch

    tensor = torch.from_numpy(np.asarray(memory)) if device == "host" else torch.as_tensor(memory, device=device)
    return tensor.view(torch.bfloat16) if spec.dtype == "bfloat16" else tensor


def _zeros(spec: TensorSpec, device: str) -> torch.Tensor:
    import torch

    return torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype), device=torch_device(device))


def in_order(
    given: Sequence[Any] | Mapping[str, Any], wanted: tuple[TensorSpec, ...], where: str, partial: bool = False
) -> list[tuple[TensorSpec, Any, str]]:
    """Pair arrays, by position or by name, with what the recording wants."""
    if not isinstance(given, Mapping):
        if len(given) != len(wanted):
            problem = Problem(
                "WRONG_COUNT", f"{len(given)} arrays for {len(wanted)} {where}: {', '.join(s.name for s in wanted)}", where
            )
            raise InputError(str(problem), [problem])
        return [(spec, value, f"{where}/{spec.name}") for spec, value in zip(wanted, given, strict=True)]
    known = {spec.name for spec in wanted}
    problems = [
        Problem("UNKNOWN_NAME", f"the recording has {', '.join(sorted(known))}", f"{where}/{name}")
        for name in given
        if name not in known
    ]
    if not partial:
        problems += [Problem("MISSING_ARRAY", "no array is given", f"{where}/{name}") for name in sorted(known - set(given))]
    if problems:
        raise wrong_input(problems)
    return [(spec, given[spec.name], f"{where}/{spec.name}") for spec in wanted if spec.name in given]
