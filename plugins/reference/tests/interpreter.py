"""An independent reading of recordings: rebuilds storages from bytes and calls each operation by name.

It shares no code with the recorder. What it computes can equal eager's bits only if strides, aliasing, in-place results,
defaults and dtypes are right in the recording.
"""

from __future__ import annotations

from typing import Any

import torch

from samebits_wire import recording_pb2 as pb

_DTYPES = {
    pb.DTYPE_BOOL: torch.bool,
    pb.DTYPE_UINT8: torch.uint8,
    pb.DTYPE_INT8: torch.int8,
    pb.DTYPE_INT16: torch.int16,
    pb.DTYPE_INT32: torch.int32,
    pb.DTYPE_INT64: torch.int64,
    pb.DTYPE_FLOAT16: torch.float16,
    pb.DTYPE_BFLOAT16: torch.bfloat16,
    pb.DTYPE_FLOAT32: torch.float32,
    pb.DTYPE_FLOAT64: torch.float64,
}
_FORMATS = {
    "contiguous": torch.contiguous_format,
    "preserve": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
_READ = (pb.ROLE_PARAMETER, pb.ROLE_BUFFER, pb.ROLE_CONSTANT)


class Interpreter:
    """Runs a recording, as often as wanted, on storages of its own."""

    def __init__(self, data: bytes, weights: dict[str, torch.Tensor], device: str = "cpu") -> None:
        self._recording = pb.Recording.FromString(data)
        self._device = device
        self._storages = []
        for storage in self._recording.storages:
            memory = torch.full((storage.bytes,), 0xFF, dtype=torch.uint8, device=device)
            if storage.role in _READ:
                raw = weights[storage.name].contiguous().flatten().view(torch.uint8)
                assert raw.numel() == storage.bytes, storage.name
                memory.copy_(raw)
            self._storages.append(memory.untyped_storage())
        self._values = [self._tensor(value) for value in self._recording.values]

    def _tensor(self, value: pb.Value) -> torch.Tensor:
        empty = torch.empty(0, dtype=_DTYPES[value.dtype], device=self._device)
        return empty.set_(self._storages[value.storage], value.offset, tuple(value.sizes), tuple(value.strides))

    def run(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        for named, given in zip(self._recording.inputs, inputs, strict=True):
            self._values[named.value].copy_(given)
        with torch.no_grad():
            for operation in self._recording.operations:
                self._call(operation)
        return {named.name: self._values[named.value].clone() for named in self._recording.outputs}

    def state(self) -> dict[str, torch.Tensor]:
        """Give what parameters and buffers hold now, flat."""
        storages = enumerate(self._recording.storages)
        frozen = [(index, storage) for index, storage in storages if storage.role in (pb.ROLE_PARAMETER, pb.ROLE_BUFFER)]
        return {
            storage.name: torch.empty(0, dtype=_DTYPES[storage.dtype], device=self._device).set_(self._storages[index])
            for index, storage in frozen
        }

    def _call(self, operation: pb.Operation) -> None:
        namespace, _, rest = operation.name.partition("::")
        base, _, overload = rest.partition(".")
        function = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
        assert [a.name for a in operation.arguments] == [a.name for a in function._schema.arguments], operation.name
        positional, by_name = [], {}
        for given, formal in zip(operation.arguments, function._schema.arguments, strict=True):
            if formal.kwarg_only:
                by_name[given.name] = self._argument(given)
            else:
                positional.append(self._argument(given))
        made = function(*positional, **by_name)
        if len(function._schema.returns) == 1:
            made = (made,)
        for recorded, result in zip(operation.results, made or (), strict=True):
            self._keep(operation, recorded, result)

    def _keep(self, operation: pb.Operation, recorded: pb.Argument, result: Any) -> None:
        if recorded.HasField("list"):
            for item, part in zip(recorded.list.items, result, strict=True):
                self._keep(operation, item, part)
            return
        if recorded.WhichOneof("kind") == "none":
            assert result is None
            return
        mine = self._values[recorded.value]
        assert result.dtype == mine.dtype, f"{operation.name} {operation.module}"
        assert result.shape == mine.shape, f"{operation.name} {operation.module}"
        assert result.stride() == mine.stride(), f"{operation.name} {operation.module}"
        if result.untyped_storage()._cdata == mine.untyped_storage()._cdata:
            assert result.storage_offset() == mine.storage_offset(), f"{operation.name} {operation.module}"
        else:
            mine.copy_(result)

    def _argument(self, given: pb.Argument) -> Any:
        match given.WhichOneof("kind"):
            case "none":
                return None
            case "value":
                return self._values[given.value]
            case "list":
                return [self._argument(item) for item in given.list.items]
            case "dtype":
                return _DTYPES[given.dtype]
            case "memory_format":
                return _FORMATS[given.memory_format]
            case "layout":
                return getattr(torch, given.layout)
            case "device":
                return torch.device(self._device)
            case "boolean" | "integer" | "real" | "text" as kind:
                return getattr(given, kind)
            case kind:
                raise AssertionError(f"argument {given.name} is of kind {kind}")
