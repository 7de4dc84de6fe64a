"""Runs a few operations of a recorded step in PyTorch, and prints the SHA-256 of what they give.

Needs PyTorch and the file inputs.safetensors beside it, and nothing else. Usage: run.py [DEVICE]
The digest of a tensor is that of "dtype sizes\\n" and its bytes in row-major order. Behind it stands whose bits they are.
"""

import ctypes
import functools
import hashlib
import importlib
import json
import os
import sys
from pathlib import Path

STEP = json.loads(r'''STEP_GOES_HERE''')
for key, value in STEP["settings"]:  # read by libraries when they are imported
    if key.startswith("env."):
        if value == "unset":
            os.environ.pop(key[4:], None)
        else:
            os.environ[key[4:]] = value

import torch

SWITCHES = {
    "attention.cudnn": "backends.cuda.enable_cudnn_sdp",
    "attention.efficient": "backends.cuda.enable_mem_efficient_sdp",
    "attention.flash": "backends.cuda.enable_flash_sdp",
    "attention.math": "backends.cuda.enable_math_sdp",
    "attention.math_reduced_precision": "backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    "deterministic_algorithms": "use_deterministic_algorithms",
    "fused_multi_head_attention": "backends.mha.set_fastpath_enabled",
}
FORMATS = {
    "contiguous": torch.contiguous_format,
    "preserve": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
DEVICE = torch.device(sys.argv[1] if len(sys.argv) > 1 else STEP["device"])


def below_torch(path):
    return functools.reduce(getattr, path.split("."), torch)


def apply_settings():
    for key, value in STEP["settings"]:
        if not key.startswith("torch."):
            continue
        key, value = key[6:], {"on": True, "off": False}.get(value, value)
        if key in SWITCHES:
            below_torch(SWITCHES[key])(value)
        else:
            owner, _, attribute = key.rpartition(".")
            setattr(below_torch(owner), attribute, value)


def read_inputs():
    data = (Path(__file__).parent / "inputs.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}


class Memory:
    """Storages of the step. What is given lies at addresses with the alignment that it was recorded with."""

    def __init__(self):
        self.blocks, self.shifts, self.tensors = {}, {}, {}
        given = read_inputs()
        for index, storage in enumerate(STEP["storages"]):
            if "name" in storage:
                self.give(index, storage, given[storage["name"]])

    def give(self, index, storage, data):
        shift = 0
        for value in STEP["values"]:
            at = value["offset"] * getattr(torch, value["dtype"]).itemsize
            if value["storage"] == index and value["alignment"] < (min(at & -at, 512) if at else 512):
                shift = value["alignment"] if DEVICE.type == "cuda" else 0
        block = torch.zeros(storage["bytes"] + shift, dtype=torch.uint8, device=DEVICE)
        if data:
            block[shift:].copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        self.blocks[index], self.shifts[index] = block.untyped_storage(), shift

    def get(self, index):
        if index in self.tensors:
            return self.tensors[index]
        value = STEP["values"][index]
        dtype = getattr(torch, value["dtype"])
        block = self.blocks[value["storage"]]
        offset = value["offset"] + self.shifts.get(value["storage"], 0) // dtype.itemsize
        empty = torch.empty(0, dtype=dtype, device=block.device)
        return empty.set_(block, offset, tuple(value["sizes"]), tuple(value["strides"]))

    def keep(self, recorded, result):
        if isinstance(recorded, list):
            for item, part in zip(recorded, result, strict=True):
                self.keep(item, part)
        elif recorded is not None:
            self.tensors[recorded["value"]] = result
            self.blocks.setdefault(STEP["values"][recorded["value"]]["storage"], result.untyped_storage())


def argument(memory, given):
    if isinstance(given, list):
        return [argument(memory, item) for item in given]
    if not isinstance(given, dict):
        return given
    (kind, what), *_ = given.items()
    match kind:
        case "value":
            return memory.get(what)
        case "real":
            return float.fromhex(what)
        case "dtype":
            return getattr(torch, what)
        case "memory_format":
            return FORMATS[what]
        case "layout":
            return torch.strided
        case "device":
            return torch.device("cpu") if what == "cpu" else DEVICE
    raise ValueError(kind)


def call(memory, operation):
    namespace, _, rest = operation["name"].partition("::")
    if namespace == "torchvision":
        importlib.import_module(namespace)
    base, _, overload = rest.partition(".")
    function = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    positional, named = [], {}
    for formal in function._schema.arguments:
        value = argument(memory, operation["arguments"][formal.name])
        if formal.kwarg_only:
            named[formal.name] = value
        else:
            positional.append(value)
    made = function(*positional, **named)
    results = (made,) if len(function._schema.returns) == 1 else tuple(made or ())
    for recorded, result in zip(operation["results"], results, strict=True):
        memory.keep(recorded, result)


def digest(tensor):
    name = str(tensor.dtype).removeprefix("torch.")
    sizes = ",".join(str(n) for n in tensor.shape)
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    raw = ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""
    return hashlib.sha256(f"{name} {sizes}\n".encode() + raw).hexdigest()


def main():
    try:
        torch.empty(1, device=DEVICE)
    except (RuntimeError, AssertionError) as why:
        sys.exit(f"run.py: device {DEVICE}: {str(why).splitlines()[0]} (run.py cpu runs on the CPU)")
    apply_settings()
    memory = Memory()
    with torch.no_grad():
        for operation in STEP["operations"]:
            call(memory, operation)
    for name, value in STEP["outputs"]:
        found = digest(memory.get(value))
        same = [side for side, sums in STEP["expected"].items() if sums.get(name) == found]
        print(f"{found}  {name}  {' and '.join(same) or 'neither'}")


if __name__ == "__main__":
    main()
