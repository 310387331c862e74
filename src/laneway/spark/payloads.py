"""Payloads with a schema: from a type, a task or a sample to Spark's types, and payloads as structs
of them; and a frame of arguments as calls of a task, ready to be written."""

import dataclasses
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from inspect import Parameter
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, is_typeddict

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from laneway.convert.containers import LISTS, MAPS
from laneway.convert.reader import bare, hints_of
from laneway.errors import InvalidCall, InvalidOption
from laneway.payload import ARGUMENTS, JSON, decode_json
from laneway.to_json import is_model_class
from laneway.worker.tasks.task import TaskView

from .errors import plainly

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLE = 1000
"""How many payloads of a frame are looked at for their schema."""

_DEEPEST = 50
_TEXT = StringType()
# As the library writes them. All that is not here, and whatever can be of several types, is text:
# Spark then leaves the JSON as it is.
_SCALARS: dict[Any, DataType] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    timedelta: DoubleType(),
    datetime: TimestampType(),
    date: DateType(),
    Decimal: DecimalType(38, 18),
    bytes: BinaryType(),
}
_BY_PYDANTIC = {**_SCALARS, timedelta: _TEXT, bytes: _TEXT}

_FIELDS = frozenset(
    (
        "channel",
        "key",
        "key_scope",
        "key_window",
        "headers",
        "priority",
        "delay",
        "at",
        "expires_in",
        "expires_at",
        "max_attempts",
    )
)


def calls(frame: "DataFrame", task: TaskView[..., Any]) -> "DataFrame":
    """One call of the task for each row: columns named like its parameters are the arguments, all
    others are fields of the message, such as ``channel``. A null argument is left out.

    Raises InvalidCall for a column that is neither, and for a missing required argument.

    >>> calls(orders, send_receipt).write.format("laneway").option("url", url).save()
    """
    from pyspark.sql.functions import lit, struct, to_json

    parameters = task.parameters
    named = [name for name in frame.columns if name in parameters.hints]
    fields = [name for name in frame.columns if name not in parameters.hints]
    if missing := sorted(parameters.required.difference(named)):
        raise InvalidCall(f"{task.kind} needs the columns {', '.join(missing)}")
    if unknown := [name for name in fields if name not in _FIELDS]:
        raise InvalidCall(
            f"{task.kind} has no parameter {', '.join(unknown)}, nor has a message: drop the "
            f"columns, or rename them to {', '.join(parameters.hints)}"
        )
    if task.replaces:
        raise InvalidCall(
            f"{task.kind} has on_duplicate=: Spark publishes nothing where a key is in use, and "
            'replaces nothing; write using(on_duplicate="keep") for the frame'
        )
    kept = {name: lit(value) for name, value in task.fixed_options.items() if name not in fields}
    payload = to_json(struct(*named)) if named else lit("{}")
    return frame.select(
        payload.alias("payload"),
        lit(task.kind).alias("kind"),
        lit(ARGUMENTS).alias("content_type"),
        *(value.alias(name) for name, value in kept.items()),
        *fields,
    )


def payload_schema(of: Any) -> StructType:
    """The schema of payloads: of a class with fields, a task's arguments by name, or a sample. That
    is a frame with a column ``payload``, of which the first 1,000 rows are read, or an
    iterable of payloads, as JSON or as dicts.

    >>> payload_schema(Order).simpleString()
    'struct<id:bigint,total:decimal(38,18),paid_at:timestamp>'
    >>> payload_schema([b'{"id": 1}', b'{"id": 2, "tags": ["new"]}']).simpleString()
    'struct<id:bigint,tags:array<string>>'
    """
    if isinstance(of, TaskView):
        return _struct(of.parameters.hints.items(), _SCALARS, ())
    if hasattr(of, "sparkSession"):
        rows = of.select("payload").where("payload is not null").limit(SAMPLE).collect()
        return _of_sample(row[0] for row in rows)
    if isinstance(of, type) or get_origin(of) is not None:
        found = _of_hint(of, _SCALARS, ())
        if isinstance(found, StructType):
            return found
        raise InvalidOption(f"{of} has no fields: give a dataclass, a TypedDict or a model")
    if isinstance(of, Iterable) and not isinstance(of, str | bytes | dict):
        return _of_sample(of)
    raise InvalidOption(
        f"a {type(of).__name__} has no schema: give a class with fields, a task, a frame with a "
        "column 'payload', or a list of payloads"
    )


def read_payload(frame: "DataFrame", of: Any) -> "DataFrame":
    """The frame, or the stream, with ``payload`` as a struct, and a new column ``payload_error``:
    null, or why there is no struct. Then ``payload`` is null, and the row stays.

    ``of`` is a schema, as a StructType or as DDL, or what ``payload_schema`` takes. A field that a
    payload lacks is null, one that the schema lacks is left out. The arguments of a task are found
    however its message carries them. Needs the column ``content_type``, if ``payload`` is not JSON.

    >>> letters = spark.read.format("laneway").option("what", "dead_letters").load()
    >>> read_payload(letters, send_receipt).groupBy("payload.order").count().show()
    """
    from pyspark.sql.functions import col, concat, lit, struct, substring, when

    schema = _schema(of)
    text, kind = col("payload").cast("string"), lit(JSON)
    if "content_type" in frame.columns:
        kind = col("content_type")
    readable, written = _is_json(kind), text
    if isinstance(of, TaskView) and of.parameters.bare is not None:
        readable, written = readable | kind.startswith("text/"), _arguments(text, kind, of)
    parsed = col(_PARSED)
    error = (
        when(col("payload").isNull(), lit("the payload is null"))
        .when(~readable, concat(lit("the payload is "), kind, lit(", not JSON")))
        .when(
            parsed.isNull() | parsed[_BAD].isNotNull(),
            concat(lit("no JSON of this schema: "), substring(text, 1, 200)),
        )
    )
    fields = struct(*(parsed[field.name].alias(field.name) for field in schema))
    # In a column of its own, so that Spark parses it once.
    read = frame.withColumn(_PARSED, _parsed(written, schema)).withColumn("payload_error", error)
    return read.withColumn("payload", when(col("payload_error").isNull(), fields)).drop(_PARSED)


_PARSED = "laneway payload"
_BAD = "laneway no json"


def _schema(of: Any) -> StructType:
    if isinstance(of, str):
        with plainly():
            of = StructType.fromDDL(of)
    return of if isinstance(of, StructType) else payload_schema(of)


def _parsed(text: "Column", schema: StructType) -> "Column":
    from pyspark.sql.functions import from_json

    wanted = StructType([*schema.fields, StructField(_BAD, _TEXT)])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    return from_json(text, wanted, options)


def _is_json(kind: "Column") -> "Column":
    """As laneway.payload.is_json."""
    return kind.startswith(JSON) | kind.contains("+json")


def _arguments(text: "Column", kind: "Column", task: TaskView[..., Any]) -> "Column":
    """The arguments by name, as JSON: a message may carry its only argument bare."""
    from pyspark.sql.functions import concat, length, lit, replace, struct, to_json, when

    name = task.parameters.bare
    assert name is not None
    named = replace(kind, lit(" "), lit("")) == ARGUMENTS.replace(" ", "")
    key = to_json(struct(lit("").alias(name)))  # {"name":""}
    as_json = concat(key.substr(lit(1), length(key) - 3), text, lit("}"))
    as_text = to_json(struct(text.alias(name)))
    return when(named, text).when(kind.startswith("text/"), as_text).otherwise(as_json)


def _of_hint(hint: Any, scalars: dict[Any, DataType], above: tuple[Any, ...]) -> DataType:
    """``above``: the classes that hold it. One that holds itself stays text there."""
    hint = bare(hint)
    origin = get_origin(hint) or hint
    if origin in scalars:
        return scalars[origin]
    if origin is Union or origin is UnionType:
        return _of_union(get_args(hint), scalars, above)
    if origin is Literal:
        return _of_values(get_args(hint))
    if origin in LISTS or (origin is tuple and get_args(hint)[1:] == (...,)):
        return ArrayType(_of_hint((get_args(hint) or (Any,))[0], scalars, above))
    if origin is tuple:
        return ArrayType(_TEXT)
    if origin in MAPS:
        return MapType(_TEXT, _of_hint((get_args(hint) or (Any, Any))[1], scalars, above))
    if not isinstance(origin, type) or hint in above:
        return _TEXT
    if issubclass(origin, Enum):
        return _of_values([one.value for one in origin])
    if issubclass(origin, tuple):  # a NamedTuple is written as an array
        return ArrayType(_TEXT)
    return _of_class(hint, origin, scalars, (*above, hint))


def _of_union(
    hints: tuple[Any, ...], scalars: dict[Any, DataType], above: tuple[Any, ...]
) -> DataType:
    found = [_of_hint(one, scalars, above) for one in hints if one not in (None, NoneType)]
    return found[0] if found and all(one == found[0] for one in found) else _TEXT


def _of_values(values: Iterable[Any]) -> DataType:
    found = {_SCALARS.get(type(value), _TEXT) for value in values}
    return found.pop() if len(found) == 1 else _TEXT


def _of_class(
    hint: Any, origin: Any, scalars: dict[Any, DataType], above: tuple[Any, ...]
) -> DataType:
    if is_typeddict(origin):
        return _struct(hints_of(hint).items(), scalars, above)
    if dataclasses.is_dataclass(origin):
        hints = hints_of(hint)
        named = [(field.name, hints[field.name]) for field in dataclasses.fields(origin)]
        return _struct(named, scalars, above)
    if is_model_class(origin):
        if origin.__pydantic_root_model__:
            return _of_hint(origin.model_fields["root"].annotation, _BY_PYDANTIC, above)
        fields = origin.model_fields.items()
        written = [(one.serialization_alias or name, one.annotation) for name, one in fields]
        return _struct(written, _BY_PYDANTIC, above)
    if hasattr(origin, "__struct_fields__") and not origin.__struct_config__.array_like:
        hints = hints_of(hint)
        names = zip(origin.__struct_encode_fields__, origin.__struct_fields__, strict=True)
        tag = origin.__struct_config__.tag_field
        tagged = [(tag, str)] if tag else []
        return _struct([*tagged, *((name, hints[own]) for name, own in names)], scalars, above)
    return _TEXT


def _struct(
    fields: Iterable[tuple[str, Any]], scalars: dict[Any, DataType], above: tuple[Any, ...]
) -> StructType:
    return StructType(
        [
            StructField(name, _of_hint(Any if hint is Parameter.empty else hint, scalars, above))
            for name, hint in fields
        ]
    )


def _of_sample(payloads: Iterable[Any]) -> StructType:
    found: DataType = NullType()
    for payload in payloads:
        raw = bytes(payload) if isinstance(payload, bytearray | memoryview) else payload
        value = decode_json(raw) if isinstance(raw, str | bytes) else raw
        if not isinstance(value, dict):
            raise InvalidOption(
                f"a payload of the sample is not a JSON object but a {type(value).__name__}"
            )
        found = _merged(found, _of_value(value))
    if isinstance(found, NullType):
        raise InvalidOption("the sample has no payloads: give some, or a class with fields")
    known = _known(found)
    assert isinstance(known, StructType)
    return known


def _of_value(value: Any, depth: int = 0) -> DataType:
    if value is None:
        return NullType()
    if depth == _DEEPEST:
        return _TEXT
    if isinstance(value, dict):
        fields = [(str(name), _of_value(part, depth + 1)) for name, part in value.items()]
        return StructType([StructField(*field) for field in fields])
    if isinstance(value, list | tuple):
        element: DataType = NullType()
        for part in value:
            element = _merged(element, _of_value(part, depth + 1))
        return ArrayType(element)
    if type(value) is int and not -(2**63) <= value < 2**63:
        return _TEXT
    return _SCALARS.get(type(value), _TEXT)


def _merged(one: DataType, other: DataType) -> DataType:
    """A type for both; text, if only that can hold both."""
    if one == other or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    if {type(one), type(other)} == {LongType, DoubleType}:
        return DoubleType()
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_merged(one.elementType, other.elementType))
    if isinstance(one, StructType) and isinstance(other, StructType):
        fields = {field.name: field.dataType for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, NullType()), field.dataType)
        return StructType([StructField(*field) for field in fields.items()])
    return _TEXT


def _known(found: DataType) -> DataType:
    """Text where the sample had nothing but null."""
    if isinstance(found, StructType):
        return StructType([StructField(field.name, _known(field.dataType)) for field in found])
    if isinstance(found, ArrayType):
        return ArrayType(_known(found.elementType))
    return _TEXT if isinstance(found, NullType) else found
