from samebits_wire import recording_pb2 as _recording_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Region(_message.Message):
    __slots__ = ("offset", "length")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    length: int
    def __init__(self, offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("protocol", "host_version")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_VERSION_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    host_version: str
    def __init__(self, protocol: _Optional[int] = ..., host_version: _Optional[str] = ...) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("protocol", "plugin", "version", "arms", "devices", "environment")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ARMS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    plugin: str
    version: str
    arms: _containers.RepeatedScalarFieldContainer[str]
    devices: _containers.RepeatedScalarFieldContainer[str]
    environment: _containers.RepeatedCompositeFieldContainer[_recording_pb2.Setting]
    def __init__(self, protocol: _Optional[int] = ..., plugin: _Optional[str] = ..., version: _Optional[str] = ..., arms: _Optional[_Iterable[str]] = ..., devices: _Optional[_Iterable[str]] = ..., environment: _Optional[_Iterable[_Union[_recording_pb2.Setting, _Mapping]]] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("region",)
    REGION_FIELD_NUMBER: _ClassVar[int]
    region: Region
    def __init__(self, region: _Optional[_Union[Region, _Mapping]] = ...) -> None: ...

class AttachReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BuildRequest(_message.Message):
    __slots__ = ("family", "size", "task", "seed", "precision", "profile", "device", "arm", "fresh_weights", "imgsz", "batch", "mode", "construct_only", "weights_file")
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ARM_FIELD_NUMBER: _ClassVar[int]
    FRESH_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    IMGSZ_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CONSTRUCT_ONLY_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FILE_FIELD_NUMBER: _ClassVar[int]
    family: str
    size: str
    task: str
    seed: int
    precision: str
    profile: str
    device: str
    arm: str
    fresh_weights: bool
    imgsz: int
    batch: int
    mode: str
    construct_only: bool
    weights_file: str
    def __init__(self, family: _Optional[str] = ..., size: _Optional[str] = ..., task: _Optional[str] = ..., seed: _Optional[int] = ..., precision: _Optional[str] = ..., profile: _Optional[str] = ..., device: _Optional[str] = ..., arm: _Optional[str] = ..., fresh_weights: _Optional[bool] = ..., imgsz: _Optional[int] = ..., batch: _Optional[int] = ..., mode: _Optional[str] = ..., construct_only: _Optional[bool] = ..., weights_file: _Optional[str] = ...) -> None: ...

class BuildReply(_message.Message):
    __slots__ = ("inputs", "weights_length", "task", "size", "imgsz", "outputs", "checkpoint_length", "segment", "rest", "others")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_LENGTH_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    IMGSZ_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    weights_length: int
    task: str
    size: str
    imgsz: int
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    checkpoint_length: int
    segment: str
    rest: bool
    others: _containers.RepeatedCompositeFieldContainer[Other]
    def __init__(self, inputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., weights_length: _Optional[int] = ..., task: _Optional[str] = ..., size: _Optional[str] = ..., imgsz: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., checkpoint_length: _Optional[int] = ..., segment: _Optional[str] = ..., rest: _Optional[bool] = ..., others: _Optional[_Iterable[_Union[Other, _Mapping]]] = ...) -> None: ...

class Other(_message.Message):
    __slots__ = ("family", "imgsz")
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    IMGSZ_FIELD_NUMBER: _ClassVar[int]
    family: str
    imgsz: int
    def __init__(self, family: _Optional[str] = ..., imgsz: _Optional[int] = ...) -> None: ...

class TensorSpec(_message.Message):
    __slots__ = ("name", "dtype", "sizes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: _recording_pb2.DType
    sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[_Union[_recording_pb2.DType, str]] = ..., sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class RecordRequest(_message.Message):
    __slots__ = ("inputs",)
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    inputs: Bank
    def __init__(self, inputs: _Optional[_Union[Bank, _Mapping]] = ...) -> None: ...

class RecordReply(_message.Message):
    __slots__ = ("recording_length", "weights_length", "outputs")
    RECORDING_LENGTH_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_LENGTH_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    recording_length: int
    weights_length: int
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    def __init__(self, recording_length: _Optional[int] = ..., weights_length: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("what", "region")
    class What(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        WHAT_UNSPECIFIED: _ClassVar[ExportRequest.What]
        WHAT_RECORDING: _ClassVar[ExportRequest.What]
        WHAT_WEIGHTS: _ClassVar[ExportRequest.What]
        WHAT_CHECKPOINT: _ClassVar[ExportRequest.What]
    WHAT_UNSPECIFIED: ExportRequest.What
    WHAT_RECORDING: ExportRequest.What
    WHAT_WEIGHTS: ExportRequest.What
    WHAT_CHECKPOINT: ExportRequest.What
    WHAT_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    what: ExportRequest.What
    region: Region
    def __init__(self, what: _Optional[_Union[ExportRequest.What, str]] = ..., region: _Optional[_Union[Region, _Mapping]] = ...) -> None: ...

class ExportReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LoadRequest(_message.Message):
    __slots__ = ("recording", "weights", "device", "arm", "options", "checkpoint")
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ARM_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    recording: Region
    weights: Region
    device: str
    arm: str
    options: _containers.RepeatedCompositeFieldContainer[_recording_pb2.Setting]
    checkpoint: Region
    def __init__(self, recording: _Optional[_Union[Region, _Mapping]] = ..., weights: _Optional[_Union[Region, _Mapping]] = ..., device: _Optional[str] = ..., arm: _Optional[str] = ..., options: _Optional[_Iterable[_Union[_recording_pb2.Setting, _Mapping]]] = ..., checkpoint: _Optional[_Union[Region, _Mapping]] = ...) -> None: ...

class LoadReply(_message.Message):
    __slots__ = ("inputs", "outputs", "recording_digest", "arena_bytes", "peak_bytes", "checkpoint_length", "launches")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    RECORDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ARENA_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    recording_digest: str
    arena_bytes: int
    peak_bytes: int
    checkpoint_length: int
    launches: LaunchList
    def __init__(self, inputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., recording_digest: _Optional[str] = ..., arena_bytes: _Optional[int] = ..., peak_bytes: _Optional[int] = ..., checkpoint_length: _Optional[int] = ..., launches: _Optional[_Union[LaunchList, _Mapping]] = ...) -> None: ...

class LaunchList(_message.Message):
    __slots__ = ("kinds", "kind", "lane")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    kind: bytes
    lane: bytes
    def __init__(self, kinds: _Optional[_Iterable[str]] = ..., kind: _Optional[bytes] = ..., lane: _Optional[bytes] = ...) -> None: ...

class Bank(_message.Message):
    __slots__ = ("tensors",)
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    tensors: _containers.RepeatedCompositeFieldContainer[PlacedTensor]
    def __init__(self, tensors: _Optional[_Iterable[_Union[PlacedTensor, _Mapping]]] = ...) -> None: ...

class PlacedTensor(_message.Message):
    __slots__ = ("spec", "region")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    spec: TensorSpec
    region: Region
    def __init__(self, spec: _Optional[_Union[TensorSpec, _Mapping]] = ..., region: _Optional[_Union[Region, _Mapping]] = ...) -> None: ...

class PrepareRequest(_message.Message):
    __slots__ = ("inputs", "outputs", "cuda_graph")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CUDA_GRAPH_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[Bank]
    outputs: _containers.RepeatedCompositeFieldContainer[Bank]
    cuda_graph: bool
    def __init__(self, inputs: _Optional[_Iterable[_Union[Bank, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[Bank, _Mapping]]] = ..., cuda_graph: _Optional[bool] = ...) -> None: ...

class PrepareReply(_message.Message):
    __slots__ = ("captured", "nodes", "peak_bytes")
    CAPTURED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    captured: bool
    nodes: int
    peak_bytes: int
    def __init__(self, captured: _Optional[bool] = ..., nodes: _Optional[int] = ..., peak_bytes: _Optional[int] = ...) -> None: ...

class DisturbRequest(_message.Message):
    __slots__ = ("poison_outputs", "churn")
    POISON_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CHURN_FIELD_NUMBER: _ClassVar[int]
    poison_outputs: bool
    churn: bool
    def __init__(self, poison_outputs: _Optional[bool] = ..., churn: _Optional[bool] = ...) -> None: ...

class DisturbReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SituateRequest(_message.Message):
    __slots__ = ("situation", "seed")
    SITUATION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    situation: str
    seed: int
    def __init__(self, situation: _Optional[str] = ..., seed: _Optional[int] = ...) -> None: ...

class SituateReply(_message.Message):
    __slots__ = ("facts",)
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[_recording_pb2.Setting]
    def __init__(self, facts: _Optional[_Iterable[_Union[_recording_pb2.Setting, _Mapping]]] = ...) -> None: ...

class TraceRequest(_message.Message):
    __slots__ = ("input_bank", "want", "operation", "result", "region")
    INPUT_BANK_FIELD_NUMBER: _ClassVar[int]
    WANT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    input_bank: int
    want: bool
    operation: int
    result: int
    region: Region
    def __init__(self, input_bank: _Optional[int] = ..., want: _Optional[bool] = ..., operation: _Optional[int] = ..., result: _Optional[int] = ..., region: _Optional[_Union[Region, _Mapping]] = ...) -> None: ...

class TraceReply(_message.Message):
    __slots__ = ("operations", "wanted")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[OperationTrace]
    wanted: TensorSpec
    def __init__(self, operations: _Optional[_Iterable[_Union[OperationTrace, _Mapping]]] = ..., wanted: _Optional[_Union[TensorSpec, _Mapping]] = ...) -> None: ...

class OperationTrace(_message.Message):
    __slots__ = ("operation", "digests")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    operation: int
    digests: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, operation: _Optional[int] = ..., digests: _Optional[_Iterable[str]] = ...) -> None: ...

class MeasureRequest(_message.Message):
    __slots__ = ("input_bank", "warmup", "iterations")
    INPUT_BANK_FIELD_NUMBER: _ClassVar[int]
    WARMUP_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    input_bank: int
    warmup: int
    iterations: int
    def __init__(self, input_bank: _Optional[int] = ..., warmup: _Optional[int] = ..., iterations: _Optional[int] = ...) -> None: ...

class MeasureReply(_message.Message):
    __slots__ = ("milliseconds",)
    MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    milliseconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, milliseconds: _Optional[_Iterable[float]] = ...) -> None: ...

class StatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatsReply(_message.Message):
    __slots__ = ("captures", "replays", "eager_steps", "fallbacks", "launches", "peak_bytes", "fallback_reason", "synchronisations", "reserved_bytes", "nodes_by_kind", "generator", "invalidations", "latched", "allocated_bytes")
    class NodesByKindEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CAPTURES_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    EAGER_STEPS_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    SYNCHRONISATIONS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    NODES_BY_KIND_FIELD_NUMBER: _ClassVar[int]
    GENERATOR_FIELD_NUMBER: _ClassVar[int]
    INVALIDATIONS_FIELD_NUMBER: _ClassVar[int]
    LATCHED_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    captures: int
    replays: int
    eager_steps: int
    fallbacks: int
    launches: int
    peak_bytes: int
    fallback_reason: str
    synchronisations: int
    reserved_bytes: int
    nodes_by_kind: _containers.ScalarMap[str, int]
    generator: str
    invalidations: int
    latched: bool
    allocated_bytes: int
    def __init__(self, captures: _Optional[int] = ..., replays: _Optional[int] = ..., eager_steps: _Optional[int] = ..., fallbacks: _Optional[int] = ..., launches: _Optional[int] = ..., peak_bytes: _Optional[int] = ..., fallback_reason: _Optional[str] = ..., synchronisations: _Optional[int] = ..., reserved_bytes: _Optional[int] = ..., nodes_by_kind: _Optional[_Mapping[str, int]] = ..., generator: _Optional[str] = ..., invalidations: _Optional[int] = ..., latched: _Optional[bool] = ..., allocated_bytes: _Optional[int] = ...) -> None: ...

class ProcessRequest(_message.Message):
    __slots__ = ("stage", "settings", "bank")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    BANK_FIELD_NUMBER: _ClassVar[int]
    stage: str
    settings: _containers.RepeatedCompositeFieldContainer[_recording_pb2.Setting]
    bank: Bank
    def __init__(self, stage: _Optional[str] = ..., settings: _Optional[_Iterable[_Union[_recording_pb2.Setting, _Mapping]]] = ..., bank: _Optional[_Union[Bank, _Mapping]] = ...) -> None: ...

class ProcessReply(_message.Message):
    __slots__ = ("tensors", "text")
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    tensors: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    text: str
    def __init__(self, tensors: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., text: _Optional[str] = ...) -> None: ...

class Problems(_message.Message):
    __slots__ = ("problems",)
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("reason", "summary", "detail", "path")
    REASON_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    reason: str
    summary: str
    detail: str
    path: str
    def __init__(self, reason: _Optional[str] = ..., summary: _Optional[str] = ..., detail: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...
