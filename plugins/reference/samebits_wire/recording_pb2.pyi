from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_INPUT: _ClassVar[Role]
    ROLE_PARAMETER: _ClassVar[Role]
    ROLE_BUFFER: _ClassVar[Role]
    ROLE_CONSTANT: _ClassVar[Role]
    ROLE_GRADIENT: _ClassVar[Role]
    ROLE_OUTPUT: _ClassVar[Role]
    ROLE_SCRATCH: _ClassVar[Role]

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_UNSPECIFIED: _ClassVar[DType]
    DTYPE_BOOL: _ClassVar[DType]
    DTYPE_UINT8: _ClassVar[DType]
    DTYPE_INT8: _ClassVar[DType]
    DTYPE_INT16: _ClassVar[DType]
    DTYPE_INT32: _ClassVar[DType]
    DTYPE_INT64: _ClassVar[DType]
    DTYPE_FLOAT16: _ClassVar[DType]
    DTYPE_BFLOAT16: _ClassVar[DType]
    DTYPE_FLOAT32: _ClassVar[DType]
    DTYPE_FLOAT64: _ClassVar[DType]
ROLE_UNSPECIFIED: Role
ROLE_INPUT: Role
ROLE_PARAMETER: Role
ROLE_BUFFER: Role
ROLE_CONSTANT: Role
ROLE_GRADIENT: Role
ROLE_OUTPUT: Role
ROLE_SCRATCH: Role
DTYPE_UNSPECIFIED: DType
DTYPE_BOOL: DType
DTYPE_UINT8: DType
DTYPE_INT8: DType
DTYPE_INT16: DType
DTYPE_INT32: DType
DTYPE_INT64: DType
DTYPE_FLOAT16: DType
DTYPE_BFLOAT16: DType
DTYPE_FLOAT32: DType
DTYPE_FLOAT64: DType

class Recording(_message.Message):
    __slots__ = ("header", "storages", "values", "operations", "inputs", "outputs", "slots")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    STORAGES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    header: Header
    storages: _containers.RepeatedCompositeFieldContainer[Storage]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    inputs: _containers.RepeatedCompositeFieldContainer[NamedValue]
    outputs: _containers.RepeatedCompositeFieldContainer[NamedValue]
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., storages: _Optional[_Iterable[_Union[Storage, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., inputs: _Optional[_Iterable[_Union[NamedValue, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[NamedValue, _Mapping]]] = ..., slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("schema", "family", "size", "task", "mode", "precision", "profile", "profile_settings", "device_type", "environment", "seed", "seasoning", "imgsz", "batch")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SEASONING_FIELD_NUMBER: _ClassVar[int]
    IMGSZ_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    schema: int
    family: str
    size: str
    task: str
    mode: str
    precision: str
    profile: str
    profile_settings: _containers.RepeatedCompositeFieldContainer[Setting]
    device_type: str
    environment: _containers.RepeatedCompositeFieldContainer[Setting]
    seed: int
    seasoning: str
    imgsz: int
    batch: int
    def __init__(self, schema: _Optional[int] = ..., family: _Optional[str] = ..., size: _Optional[str] = ..., task: _Optional[str] = ..., mode: _Optional[str] = ..., precision: _Optional[str] = ..., profile: _Optional[str] = ..., profile_settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., device_type: _Optional[str] = ..., environment: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., seed: _Optional[int] = ..., seasoning: _Optional[str] = ..., imgsz: _Optional[int] = ..., batch: _Optional[int] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Storage(_message.Message):
    __slots__ = ("bytes", "role", "name", "dtype")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    role: Role
    name: str
    dtype: DType
    def __init__(self, bytes: _Optional[int] = ..., role: _Optional[_Union[Role, str]] = ..., name: _Optional[str] = ..., dtype: _Optional[_Union[DType, str]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("storage", "dtype", "sizes", "strides", "offset", "alignment")
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    STRIDES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    storage: int
    dtype: DType
    sizes: _containers.RepeatedScalarFieldContainer[int]
    strides: _containers.RepeatedScalarFieldContainer[int]
    offset: int
    alignment: int
    def __init__(self, storage: _Optional[int] = ..., dtype: _Optional[_Union[DType, str]] = ..., sizes: _Optional[_Iterable[int]] = ..., strides: _Optional[_Iterable[int]] = ..., offset: _Optional[int] = ..., alignment: _Optional[int] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("name", "arguments", "results", "module", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments: _containers.RepeatedCompositeFieldContainer[Argument]
    results: _containers.RepeatedCompositeFieldContainer[Argument]
    module: str
    source: str
    def __init__(self, name: _Optional[str] = ..., arguments: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ..., results: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ..., module: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class Argument(_message.Message):
    __slots__ = ("name", "none", "value", "boolean", "integer", "real", "text", "list", "dtype", "memory_format", "layout", "device", "slot")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FORMAT_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    name: str
    none: bool
    value: int
    boolean: bool
    integer: int
    real: float
    text: str
    list: ArgumentList
    dtype: DType
    memory_format: str
    layout: str
    device: str
    slot: int
    def __init__(self, name: _Optional[str] = ..., none: _Optional[bool] = ..., value: _Optional[int] = ..., boolean: _Optional[bool] = ..., integer: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ..., list: _Optional[_Union[ArgumentList, _Mapping]] = ..., dtype: _Optional[_Union[DType, str]] = ..., memory_format: _Optional[str] = ..., layout: _Optional[str] = ..., device: _Optional[str] = ..., slot: _Optional[int] = ...) -> None: ...

class ArgumentList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Argument]
    def __init__(self, items: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ...) -> None: ...

class NamedValue(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: int
    def __init__(self, name: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("name", "dtype")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: DType
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[_Union[DType, str]] = ...) -> None: ...
