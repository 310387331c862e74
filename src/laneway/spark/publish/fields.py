"""The columns of a frame as fields of messages, checked before anything is written: without
pyarrow, which the processes that plan and commit a job do not need."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from laneway.errors import InvalidOption
from laneway.payload import BYTES, JSON

TIMES = ("at", "expires_at")
LENGTHS = ("delay", "expires_in", "key_window")
TEXTS = ("queue", "channel", "kind", "key", "key_scope", "content_type", "headers")
_FIELDS: dict[str, tuple[str, ...]] = {
    "payload": ("binary", "string", "struct", "map", "array"),
    **dict.fromkeys(TEXTS, ("string",)),
    "headers": ("string", "map"),
    **dict.fromkeys(LENGTHS, ("interval day to second",)),
    **dict.fromkeys(TIMES, ("timestamp", "timestamp_ntz")),
    "priority": ("tinyint", "smallint", "int", "bigint"),
    "max_attempts": ("tinyint", "smallint", "int", "bigint"),
}
_NESTED = (StructType, MapType, ArrayType)
# What the library writes as JSON: numbers, text, true and false, times as ISO 8601, decimals as
# text, bytes as base64, intervals in seconds.
_JSON_VALUES = (
    *(StringType, BooleanType, NumericType, BinaryType, NullType),
    *(DateType, TimestampType, TimestampNTZType, DayTimeIntervalType),
)


def check_columns(schema: StructType) -> None:
    """Raises InvalidOption for a frame whose columns are not those of messages."""
    names = schema.fieldNames()
    if "payload" not in names:
        raise InvalidOption(
            "the frame has no column 'payload': "
            "select(to_json(struct('*')).alias('payload')) makes one"
        )
    for field in schema:
        allowed = _FIELDS.get(field.name)
        if allowed is None:
            raise InvalidOption(
                f"a message has no field {field.name!r}: it has {', '.join(_FIELDS)}"
            )
        kind = _kind(field.dataType)
        if kind not in allowed:
            raise InvalidOption(
                f"column {field.name!r} is {kind}: it must be {' or '.join(allowed)}"
            )
        check_json(field.name, field.dataType)
    if "key_scope" in names and "key" not in names:
        raise InvalidOption("the frame has 'key_scope', which says where a key holds: add 'key'")
    for pair in (("delay", "at"), ("expires_in", "expires_at")):
        if set(pair) <= set(names):
            raise InvalidOption(f"the frame has both {pair[0]!r} and {pair[1]!r}: keep one")


def check_json(path: str, type: DataType) -> None:
    """Raises InvalidOption for a structure with a value that JSON has no word for."""
    if isinstance(type, StructType):
        for field in type:
            check_json_value(f"{path}.{field.name}", field.dataType)
        if len(set(type.fieldNames())) < len(type):
            raise InvalidOption(f"{path!r} has two fields of one name: rename one")
    elif isinstance(type, MapType):
        if not isinstance(type.keyType, StringType):
            raise InvalidOption(
                f"the keys of {path!r} are {type.keyType.simpleString()}: in JSON they are text, "
                "cast them to string"
            )
        check_json_value(path, type.valueType)
    elif isinstance(type, ArrayType):
        check_json_value(path, type.elementType)


def check_json_value(path: str, type: DataType) -> None:
    if isinstance(type, _NESTED):
        check_json(path, type)
    elif not isinstance(type, _JSON_VALUES):
        raise InvalidOption(
            f"{path!r} is {type.simpleString()}, which JSON has no word for: cast it to string"
        )


def _kind(type: DataType) -> str:
    """All intervals of days, hours, minutes and seconds are one kind, and so are all structs."""
    if isinstance(type, DayTimeIntervalType):
        return "interval day to second"
    return type.typeName() if isinstance(type, _NESTED) else type.simpleString()


def content_type(schema: StructType) -> str:
    """The default content type: all but bytes is JSON."""
    return BYTES if schema["payload"].dataType.simpleString() == "binary" else JSON
