"""Records one step on real tensors: every call below autograd, with strides, aliasing, module and source line."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from samebits_reference import encode, weights
from samebits_reference.beside import Generators, capture_is, undefined_memory
from samebits_reference.families import Built, flatten, leftovers
from samebits_reference.observe import ModulePath, Observer, operation_name, source_line
from samebits_reference.reach import NOWHERE, Origin, Reach, watch_reads
from samebits_reference.reachable import Picture
from samebits_reference.unseen import Unseen
from samebits_reference.watchers import UNINITIALISED, tensors
from samebits_reference.weights import whole_storage
from samebits_wire import recording_pb2 as pb
from samebits_wire.digest import digest_tensor
from samebits_wire.problems import Kind, Problem, ProblemError

SCHEMA = 1
_READ = (pb.ROLE_PARAMETER, pb.ROLE_BUFFER, pb.ROLE_CONSTANT)
_MAX_ALIGNMENT = 512
# What the allocators promise: of a new block's address, no more is the same from run to run.
_ALLOCATOR_ALIGNMENT = {"cpu": 64, "cuda": 512}


@dataclasses.dataclass(frozen=True)
class Taken:
    """A finished recording."""

    recording: pb.Recording
    data: bytes  # the recording, encoded deterministically
    weights: dict[str, torch.Tensor]  # what it reads: whole storages, on the CPU
    outputs: list[tuple[str, torch.Tensor]]


@dataclasses.dataclass(frozen=True)
class Named:
    """What decides a step's bits beside the family: the profile with its settings, and versions."""

    profile: str
    settings: Sequence[tuple[str, str]]
    environment: Mapping[str, str]


def record(built: Built, images: torch.Tensor, named: Named, *, observed: bool = False) -> Taken:
    """Record one step of a family that has run before (families cache constants on first use).

    Everything that cannot be recorded is refused at once, with the operation and its module. Observed, so is what runs
    and no recorder sees; this takes as long as the step once more.
    """
    unseen = Unseen() if observed else None
    with capture_is(False) as asked:
        taken = _record(built, images, named, unseen)
    if asked:
        _compare_captured(built, images, named, taken, asked[0])
    return taken


def _record(built: Built, images: torch.Tensor, named: Named, unseen: Unseen | None = None) -> Taken:
    recorder = Recorder(built)
    recorder.name_storage(images, pb.ROLE_INPUT, "images")
    observed = unseen.watch() if unseen is not None else contextlib.nullcontext()
    with Generators(built.device) as generators, recorder.modules.watch(), recorder, observed:
        output = built.step(images)
    recorder.note_generators(generators.problems)
    recorder.note_rest(output)
    if unseen is not None:
        recorder.note_unseen(unseen)
    return recorder.finish([("images", images)], list(flatten(output)), "predict", named)


def check_memory(built: Built, images: torch.Tensor, taken: Taken) -> None:
    """Refuse a step whose outputs depend on memory that it never wrote. taken was recorded just now."""
    names = {operation.name.partition(".")[0].removeprefix("aten::") for operation in taken.recording.operations}
    if not names & UNINITIALISED:
        return
    problems = undefined_memory(lambda: built.step(images))
    if problems:
        raise ProblemError(problems, Kind.UNIMPLEMENTED)


def _compare_captured(built: Built, images: torch.Tensor, named: Named, plain: Taken, where: str) -> None:
    """Record the step once more, and tell it that it is captured: it must be the same."""
    with capture_is(True):
        try:
            same = _record(built, images, named).data == plain.data
            why = "it has other operations while it is captured"
        except (ProblemError, RuntimeError) as error:
            same, why = False, f"it fails while it is captured: {(str(error).splitlines() or [''])[0]}"
    if not same:
        problem = Problem("CAPTURE_DEPENDENT_DISPATCH", f"the step asks whether it is captured, and {why}", "step", where)
        raise ProblemError(problem, Kind.UNIMPLEMENTED)


class Recorder(Observer):
    """Writes down what it sees. Training sees more: see train_recorder.py."""

    frozen: frozenset[int] = frozenset((pb.ROLE_PARAMETER, pb.ROLE_BUFFER, pb.ROLE_CONSTANT))  # roles no step may write
    inputs_stay = True  # nor its inputs

    def __init__(self, built: Built) -> None:
        super().__init__()
        self.recording = pb.Recording()
        self._built = built
        self.modules = ModulePath(built.module)
        self._problems: list[Problem] = []
        # A weak reference keeps the identity of a storage from being reused, and lets its memory go.
        self._storages: dict[int, int] = {}
        self._kept: list[StorageWeakRef] = []
        self._values: dict[tuple[Any, ...], int] = {}
        self._frozen: dict[int, torch.Tensor] = {}  # what frozen storages held, by index
        self._places: dict[int, torch.Tensor] = {}  # and they themselves
        self._state = _state(built.module)
        self._reach = Reach(self._unseen)
        self._origin: Origin = NOWHERE  # of what the call at hand is given
        self._from_device = self._from_host = False  # and whether any of it lies on a device, or on the host
        self._host: set[str] = set()  # parameters and buffers that the host read
        self._reads = contextlib.ExitStack()

    def __enter__(self) -> Recorder:
        """Begin to record."""
        self._reads.enter_context(watch_reads(self.host_reads))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """End it."""
        super().__exit__(*error)
        self._reads.close()

    # Calls.

    def where(self) -> tuple[str, str]:
        """Give module and source line of the call at hand."""
        return self.modules.current, source_line()

    def before(self, index: int, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Write down the call and its arguments, before anything is written over."""
        module, source = self.where()
        operation = self.recording.operations.add(name=operation_name(func), module=module, source=source)
        refusal = _refusal(func, args)
        if refusal:
            self._refuse(index, refusal[0], f"{operation.name} {refusal[1]}")
        try:
            operation.arguments.extend(encode.arguments(func, args, kwargs, self.value_of))
        except encode.CannotEncodeError as error:
            self._refuse(index, "UNRECORDABLE", f"{operation.name}: {error}")
            return
        self._follow(func, args, kwargs)
        for position, formal in enumerate(func._schema.arguments):
            if formal.is_write:
                self._check_write(index, operation, operation.arguments[position])
                self._went(index, args[position] if position < len(args) else kwargs.get(formal.name))

    def after(self, index: int, func: torch._ops.OpOverload, result: Any) -> None:
        """Write down the results."""
        operation = self.recording.operations[index]
        try:
            operation.results.extend(encode.results(func, result, self._result))
        except encode.CannotEncodeError as error:
            self._refuse(index, "UNRECORDABLE", f"{operation.name}: {error}")
            return
        self._went(index, result)

    def host_reads(self, what: str, tensor: torch.Tensor) -> None:
        """Refuse a read on the host, unless the tensor lies there and no input can change what it holds."""
        origin = self._reach.of(tensor)
        if tensor.device.type == "cpu" and origin is not None:
            self._host |= origin
            return
        place = "memory of the device" if tensor.device.type != "cpu" else "what an input reaches"
        module, source = self.where()
        self._problem(
            len(self.recording.operations), module, source, "DYNAMIC_OPERATION", f"{what} reads {place} on the host"
        )

    def _follow(self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note where the data that a call is given comes from."""
        given = list(tensors((args, tuple(kwargs.values()))))
        random = torch.Tag.nondeterministic_seeded in func.tags
        self._origin = None if random else self._reach.together(given)
        self._from_device = any(tensor.device.type != "cpu" for tensor in given)
        # A number on the host is given to a kernel as it is; only copies move it.
        copies = func._schema.name in _COPIES
        self._from_host = any(
            tensor.device.type == "cpu" and tensor.numel() > 0 and (tensor.dim() > 0 or copies) for tensor in given
        )

    def _went(self, index: int, into: Any) -> None:
        """Note where the data of a call goes."""
        for tensor in tensors(into):
            self._reach.flow(self._origin, tensor)
            if self._from_device and tensor.device.type == "cpu":
                name = self.recording.operations[index].name
                self._refuse(index, "DYNAMIC_OPERATION", f"{name} copies memory of the device to the host")
            if self._from_host and tensor.device.type != "cpu":
                name = self.recording.operations[index].name
                self._refuse(index, "H2D_IN_REGION", f"{name} copies memory of the host to the device")

    def _unseen(self, tensor: torch.Tensor) -> Origin:
        """Give the origin of a storage from before the step: state that steps leave alone, or a constant."""
        name, role = self._state.get(tensor.untyped_storage()._cdata, ("", pb.ROLE_CONSTANT))
        if role not in self.frozen:
            return None
        return frozenset((name,)) if name else NOWHERE

    def _check_write(self, index: int, operation: pb.Operation, argument: pb.Argument) -> None:
        items = argument.list.items if argument.HasField("list") else (argument,)
        for item in items:
            if not item.HasField("value"):
                continue
            storage = self.recording.storages[self.recording.values[item.value].storage]
            if storage.role in self.frozen:
                self._refuse(index, "WRITES_STATE", f"{operation.name} writes {storage.name}: a step may not")
            elif storage.role == pb.ROLE_INPUT and self.inputs_stay:
                self._refuse(index, "INPUT_MUTATED", f"{operation.name} writes the input {storage.name}: a step may not")

    def _refuse(self, index: int, reason: str, summary: str) -> None:
        operation = self.recording.operations[index]
        self._problem(index, operation.module, operation.source, reason, summary)

    def _problem(self, index: int, module: str, source: str, reason: str, summary: str) -> None:
        where = f"module {module or '(top)'}, {source}"
        self._problems.append(Problem(reason, summary, f"operations[{index}]", where))

    # Values and storages.

    def value_of(self, tensor: torch.Tensor) -> int:
        """Give the value that a tensor is. A tensor nobody made in this step is a constant."""
        return self._value(tensor, pb.ROLE_CONSTANT)

    def _result(self, tensor: torch.Tensor) -> int:
        return self._value(tensor, pb.ROLE_SCRATCH)

    def _value(self, tensor: torch.Tensor, role_if_new: pb.Role) -> int:
        _check_plain(tensor)
        storage = self._storage(tensor, role_if_new)
        key = (storage, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        if key not in self._values:
            self._values[key] = len(self.recording.values)
            self.recording.values.add(
                storage=storage,
                dtype=encode.dtype(tensor.dtype),
                sizes=tensor.shape,
                strides=tensor.stride(),
                offset=tensor.storage_offset(),
                alignment=_alignment(tensor),
            )
        return self._values[key]

    def _storage(self, tensor: torch.Tensor, role_if_new: pb.Role) -> int:
        block = tensor.untyped_storage()
        index = self._storages.get(block._cdata)
        if index is not None:
            if self.recording.storages[index].bytes != block.nbytes():
                raise encode.CannotEncodeError("a storage changed its size")
            return index
        if block._cdata in self._state:
            name, role = self._state[block._cdata]
            return self.name_storage(tensor, role, name)
        if role_if_new == pb.ROLE_CONSTANT:
            constants = sum(storage.role == pb.ROLE_CONSTANT for storage in self.recording.storages)
            return self.name_storage(tensor, role_if_new, f"constant.{constants}")
        return self.name_storage(tensor, role_if_new, "")

    def name_storage(self, tensor: torch.Tensor, role: pb.Role, name: str) -> int:
        """Enter the storage of a tensor. What parameters, buffers and constants hold is kept as it is now."""
        block = tensor.untyped_storage()
        index = len(self.recording.storages)
        self.recording.storages.add(bytes=block.nbytes(), role=role, name=name, dtype=encode.dtype(tensor.dtype))
        self._storages[block._cdata] = index
        self._kept.append(StorageWeakRef(block))
        if role == pb.ROLE_INPUT:
            self._reach.flow(None, tensor)
        if role in _READ:
            with torch.utils._python_dispatch._disable_current_modes():
                self._places[index] = whole_storage(tensor)
                self._frozen[index] = self._places[index].cpu().clone()
        return index

    # The end.

    def finish(
        self,
        inputs: Sequence[tuple[str, torch.Tensor]],
        outputs: Sequence[tuple[str, torch.Tensor]],
        mode: str,
        named: Named,
    ) -> Taken:
        """Name inputs and outputs and write the header, or refuse everything that was wrong."""
        for name, tensor in outputs:
            self._output(name, tensor)
        if not outputs:
            self._problems.append(Problem("NO_OUTPUTS", "the step gave no tensors", "outputs"))
        self._enter_keys()
        self._check_frozen()
        if self._problems:
            raise ProblemError(_once_each(self._problems), Kind.UNIMPLEMENTED)
        for name, tensor in (*inputs, *self._built.keys.items()):
            self.recording.inputs.add(name=name, value=self.value_of(tensor))
        self._head(mode, named, batch=self._built.order.batch if self._built.keys else inputs[0][1].shape[0])
        frozen = {self.recording.storages[index].name: content for index, content in self._frozen.items()}
        return Taken(self.recording, self.recording.SerializeToString(deterministic=True), frozen, list(outputs))

    def note_generators(self, problems: Sequence[Problem]) -> None:
        """Take what was seen of generators, unless an operation that draws is named already."""
        if not any(problem.reason == "RANDOM_OPERATION" for problem in self._problems):
            self._problems += problems

    def note_rest(self, output: Any) -> None:
        """Refuse tensors in outputs that nobody would compare: in objects that are no lists, tuples or mappings."""
        for name, rest in leftovers(output):
            tensors_in_it = Picture(output=rest).tensors
            if tensors_in_it:
                what = f"it is a {type(rest).__name__} that holds tensors: these would not be compared"
                self._problems.append(Problem("UNRECORDABLE", what, f"outputs/{name}"))

    def note_unseen(self, unseen: Unseen) -> None:
        """Refuse operations that ran and were not recorded."""
        for name, elsewhere in unseen.operations.items():
            where = "in another thread" if elsewhere else "where no recorder sees it"
            self._problems.append(Problem("UNSEEN_WORK", f"{name} runs {where}: it is not in the recording", "step"))

    def _check_frozen(self) -> None:
        """See that nobody wrote what no step may write, by what is no operation or does not say that it writes."""
        for index, held in self._frozen.items():
            storage = self.recording.storages[index]
            written = any(f" writes {storage.name}:" in problem.summary for problem in self._problems)
            if storage.role in self.frozen and not written and not _same_bits(self._places[index].cpu(), held):
                what = f"{storage.name} holds other bits after the step, and no operation says that it wrote it"
                self._problems.append(Problem("WRITES_STATE", what, f"storages[{index}]"))

    def _enter_keys(self) -> None:
        """Make inputs of what the host alone read: no operation may have."""
        for name, tensor in self._built.keys.items():
            if tensor.untyped_storage()._cdata in self._storages:
                self._problems.append(Problem("UNRECORDABLE", "an operation reads it, and the host does", f"inputs/{name}"))
            else:
                self.name_storage(tensor, pb.ROLE_INPUT, name)

    def output_role(self, name: str) -> pb.Role:
        """Give the role of the storage that an output lies on, if the step made it."""
        return pb.ROLE_OUTPUT

    def _output(self, name: str, tensor: torch.Tensor) -> None:
        try:
            value = self._value(tensor, pb.ROLE_CONSTANT)
        except encode.CannotEncodeError as error:
            self._problems.append(Problem("UNRECORDABLE", str(error), f"outputs/{name}"))
            return
        self.recording.outputs.add(name=name, value=value)
        storage = self.recording.storages[self.recording.values[value].storage]
        if storage.role == pb.ROLE_SCRATCH:
            storage.role = self.output_role(name)

    def _head(self, mode: str, named: Named, batch: int) -> None:
        header, order = self.recording.header, self._built.order
        header.schema = SCHEMA
        header.family, header.size, header.task = order.family, order.size, order.task
        header.mode, header.precision = mode, order.precision
        header.profile = named.profile
        state = weights.state(self._built.module) if self._host else {}
        settings = dict(named.settings)
        settings |= {f"host.{name}": digest_tensor(state[name]) for name in self._host}
        settings |= {f"key.{name}": " ".join(map(str, key.flatten().tolist())) for name, key in self._built.keys.items()}
        header.profile_settings.extend(pb.Setting(key=key, value=value) for key, value in sorted(settings.items()))
        header.device_type = self._built.device.type
        header.environment.extend(pb.Setting(key=key, value=value) for key, value in sorted(named.environment.items()))
        header.seed, header.seasoning = order.seed, self._built.seasoning
        header.imgsz, header.batch = order.imgsz, batch


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.flatten().view(torch.uint8), other.flatten().view(torch.uint8))


def _once_each(problems: Sequence[Problem]) -> list[Problem]:
    """Name what happens again and again at one line once, with the operation at which it first does."""
    alike: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        place = "" if problem.path.startswith("operations[") else problem.path
        alike.setdefault((problem.reason, problem.summary, problem.detail, place), []).append(problem)
    return [
        dataclasses.replace(same[0], detail=f"{same[0].detail}, {len(same)} times") if len(same) > 1 else same[0]
        for same in alike.values()
    ]


def _state(module: torch.nn.Module) -> dict[int, tuple[str, pb.Role]]:
    """Give name and role of each storage that parameters and buffers lie on; the first name of each wins."""
    state: dict[int, tuple[str, pb.Role]] = {}
    for role, named in ((pb.ROLE_PARAMETER, module.named_parameters()), (pb.ROLE_BUFFER, module.named_buffers())):
        for name, tensor in named:
            state.setdefault(tensor.untyped_storage()._cdata, (name, role))
    return state


def _alignment(tensor: torch.Tensor) -> int:
    base = tensor.untyped_storage().data_ptr()
    promise = _ALLOCATOR_ALIGNMENT[tensor.device.type]
    # The last term caps what luck gave a base beyond the promise, so that recordings do not depend on it.
    together = base | (int(tensor.storage_offset()) * tensor.element_size()) | promise | _MAX_ALIGNMENT
    return together & -together


def _check_plain(tensor: torch.Tensor) -> None:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise encode.CannotEncodeError(f"tensor subclass {type(tensor).__name__}")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
        raise encode.CannotEncodeError(f"tensor of layout {tensor.layout}, dtype {tensor.dtype}")
    if tensor.is_conj() or tensor.is_neg():
        raise encode.CannotEncodeError("tensor with a lazy conjugate or negative")
    if tensor.device.type not in _ALLOCATOR_ALIGNMENT:
        raise encode.CannotEncodeError(f"tensor on device {tensor.device}")


_COPIES = frozenset({"aten::_to_copy", "aten::copy_", "aten::copy", "aten::_copy_from"})
_RESIZING = frozenset({"aten::set_", "aten::resize_", "aten::resize_as_"})
_INDEXING = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})


def _refusal(func: torch._ops.OpOverload, args: tuple[Any, ...]) -> tuple[str, str] | None:
    """Say why a call cannot be in a recording: its reason and what it does."""
    name = func._schema.name
    if name in _RESIZING:
        return "UNRECORDABLE", "changes what lies under a tensor"
    if name in _INDEXING:
        masks = [item for item in args[1] if item is not None and item.dtype in (torch.bool, torch.uint8)]
        return ("DYNAMIC_OPERATION", "indexes by a mask: its sizes depend on data") if masks else None
    if torch.Tag.dynamic_output_shape in func.tags:
        return "DYNAMIC_OPERATION", "gives sizes that depend on data"
    if torch.Tag.data_dependent_output in func.tags:
        return "DYNAMIC_OPERATION", "reads a tensor's data on the host"
    if torch.Tag.nondeterministic_seeded in func.tags:
        return "RANDOM_OPERATION", "draws random numbers"
    return None
