"""What a frame may hold: what the library takes, whatever a column of Spark can be."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_json_string,
)

from laneway.errors import InvalidInput, InvalidOption, InvalidPayload
from laneway.payload import encode_json
from laneway.spark.options import Use, parse
from laneway.spark.publish.fields import check_columns
from laneway.spark.publish.values import shaped
from laneway.spark.read.tables import chosen

_INSTANT = pa.timestamp("us", tz="UTC")
_YEAR_10000 = 253_402_300_800_000_000
_BERLIN = pa.timestamp("us", tz="Europe/Berlin")
_NOT_UTF8 = pa.array([b"\xff"]).view(pa.string())


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("at", pa.array([None, _YEAR_10000], _INSTANT), "outside of the years 1 to 9999"),
        ("at", pa.array([-(2**63)], _INSTANT), "outside of the years 1 to 9999"),
        ("at", pa.array([-62_135_596_800_000_001], _INSTANT), "outside of the years 1 to 9999"),
        ("expires_at", pa.array([2**63 - 1], _INSTANT), "outside of the years 1 to 9999"),
        ("headers", pa.array(["{}", "[1]"]), "not a JSON object"),
        ("headers", pa.array(["null"]), "not a JSON object"),
        ("headers", pa.array([""]), "not a JSON object"),
        ("headers", pa.array(["[" * 100_000]), "not a JSON object"),
        ("headers", pa.array(['{"a": NaN}']), "cannot be written as JSON"),
        ("headers", pa.array(['{"a": "\\u0000"}']), "NUL"),
        ("headers", pa.array([f'{{"a": "{"x" * 70_000}"}}']), "65,536 are allowed"),
        ("content_type", pa.array([""]), "content type"),
        ("content_type", pa.array(["z" * 70_000]), "255 are allowed"),
        ("channel", pa.array(["a\0b"]), "a channel has a NUL character"),
        ("key", pa.array([None, "\0"]), "a key has a NUL character"),
        ("channel", _NOT_UTF8, "column 'channel' has text that is not UTF-8"),
        ("payload", _NOT_UTF8, "column 'payload' has text that is not UTF-8"),
    ],
)
def test_what_nobody_could_read_is_refused(name: str, values: pa.Array, sentence: str) -> None:
    columns = {"payload": pa.array([b"x"] * len(values)), name: values}
    with pytest.raises(InvalidInput, match=sentence):
        shaped(pa.RecordBatch.from_pydict(columns), 100_000)


def test_nulls_and_the_first_and_last_times_are_fine() -> None:
    columns = {
        "payload": pa.array([b"\xff"] * 3),
        "at": pa.array([None, -62_135_596_799_000_000, _YEAR_10000 - 1_000_000], _INSTANT),
        "headers": pa.array([None, "{}", '{"a": 1}']),
        **{name: pa.array([None] * 3, pa.string()) for name in ("channel", "key", "content_type")},
    }
    assert shaped(pa.RecordBatch.from_pydict(columns), 1).num_rows == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lease", "0s"),
        ("lease", "2d"),
        ("lease", "99999999999d"),
        ("lease", "\N{SUPERSCRIPT TWO}s"),
        ("poll", "-1s"),
        ("rowsPerPartition", "\N{SUPERSCRIPT TWO}"),
        ("rowsPerPartition", "--5"),
    ],
)
def test_numbers_and_lengths_that_are_none(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"option|lease"):
        parse({"url": "postgresql://h/d", "what": "claims", name: text}, "claim stream")


def test_a_column_asked_for_twice_is_refused() -> None:
    """Spark would answer with a stack of a hundred lines."""
    field = StructField("id", LongType())
    with pytest.raises(InvalidOption, match="'id' twice"):
        chosen(StructType([field, field]), "history")


def payloads(values: pa.Array, **more: Any) -> list[bytes]:
    batch = pa.RecordBatch.from_pydict({"payload": values, **more})
    return [bytes(one) for one in shaped(batch, 10_000)["payload"].to_pylist()]


@pytest.mark.parametrize("text", ["", "hello", "{'a': 1}", "[1", "NaN", '{"a": 1} x', "[" * 9_000])
def test_text_that_is_no_json_is_refused_by_its_row(text: str) -> None:
    batch = pa.RecordBatch.from_pydict({"payload": ["1", text]})
    with pytest.raises(InvalidPayload, match=r"^payload of row 12: .*option content_type to 'text"):
        shaped(batch, 10_000, before=10)


def test_text_of_another_content_type_is_any_text() -> None:
    batch = pa.RecordBatch.from_pydict({"payload": ["hello", ""]})
    assert shaped(batch, 100, "text/plain").num_rows == 2
    types = pa.array(["text/plain", None, "application/problem+json"])
    batch = pa.RecordBatch.from_pydict({"payload": ["hello", "2", "3"], "content_type": types})
    assert shaped(batch, 100).num_rows == 3
    batch = pa.RecordBatch.from_pydict({"payload": ["1", "2", "no"], "content_type": types})
    with pytest.raises(InvalidPayload, match="row 3"):
        shaped(batch, 100)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', "1e999", str(10**40), ' {"a":\n[1]} ', '"x"'])
def test_all_that_the_library_reads_is_json(text: str) -> None:
    """msgspec, which looks first, reads less."""
    assert payloads(pa.array([text])) == [text.encode()]


def test_structs_are_written_as_the_library_writes_dicts() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    inner = pa.struct([("at", _BERLIN), ("tags", pa.list_(_BERLIN))])
    kind = pa.struct(
        [
            *(("n", pa.int64()), ("x", pa.float64()), ("ok", pa.bool_()), ("text", pa.string())),
            *(("price", pa.decimal128(10, 2)), ("raw", pa.binary()), ("day", pa.date32())),
            *(("local", pa.timestamp("us")), ("took", pa.duration("us")), ("inner", inner)),
            *(("map", pa.map_(pa.string(), inner)), ("none", pa.null())),
        ]
    )
    value: dict[str, Any] = {
        "n": 2**60,
        "x": 0.5,
        "ok": True,
        "text": 'a"ü\n',
        "price": Decimal("12.50"),
        "raw": b"\xff",
        "day": noon.date(),
        "local": noon.replace(tzinfo=None),
        "took": timedelta(seconds=90),
        "inner": {"at": noon, "tags": [noon, None]},
        "map": [("k", {"at": None, "tags": None})],
        "none": None,
    }
    utc = noon.astimezone(UTC)
    as_dict = {**value, "map": dict(value["map"]), "inner": {"at": utc, "tags": [utc, None]}}
    nothing = dict.fromkeys(value)
    found = payloads(pa.array([value, nothing], kind))
    assert found == [encode_json(as_dict), encode_json(nothing)]
    assert json.loads(found[0])["inner"]["at"] == "2026-05-01T10:00:00+00:00"
    assert json.loads(found[0])["price"] == "12.50" and json.loads(found[0])["raw"] == "/w=="


def test_maps_and_arrays_are_payloads_and_maps_are_headers() -> None:
    words = pa.map_(pa.string(), pa.string())
    assert payloads(pa.array([[("a", "1")], []], words)) == [b'{"a":"1"}', b"{}"]
    assert payloads(pa.array([[1, None]], pa.list_(pa.int64()))) == [b"[1,null]"]
    columns = {
        "payload": pa.array(["1", "1", "1"]),
        "headers": pa.array([[("a", "ü"), ("b", None)], None, []], words),
    }
    found = shaped(pa.RecordBatch.from_pydict(columns), 100)["headers"].to_pylist()
    assert found == ['{"a":"ü","b":null}', None, "{}"]


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        (float("nan"), pa.float64(), "nan cannot be written as JSON"),
        (_YEAR_10000, pa.timestamp("us"), "year|range|out of"),
    ],
)
def test_what_json_has_no_word_for_names_its_row(value: Any, kind: pa.DataType, why: str) -> None:
    values = pa.array([None, value], kind)
    structs = pa.StructArray.from_arrays([values], ["a"])
    with pytest.raises(InvalidPayload, match=rf"^payload of row 2: .*({why})"):
        payloads(structs)


def test_times_without_a_zone_are_in_utc() -> None:
    noon = datetime(2031, 5, 1, 12, tzinfo=UTC)
    local = pa.array([noon.replace(tzinfo=None), None], pa.timestamp("us"))
    batch = pa.RecordBatch.from_pydict({"payload": ["1", "2"], "at": local})
    assert shaped(batch, 10)["at"].to_pylist() == [noon, None]


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("payload", '"long"', "column 'payload' is bigint: it must be binary or string or struct"),
        ("headers", '{"type":"struct","fields":[]}', "column 'headers' is struct"),
        (
            "headers",
            '{"type":"map","keyType":"long","valueType":"string","valueContainsNull":true}',
            "the keys of 'headers' are bigint",
        ),
        (
            "payload",
            '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}',
            "'payload.v' is variant, which JSON has no word for",
        ),
    ],
)
def test_types_that_are_no_json(name: str, kind: str, sentence: str) -> None:
    given = _parse_datatype_json_string(kind)
    payload = StructField("payload", StringType())
    fields = (
        [StructField(name, given)] if name == "payload" else [payload, StructField(name, given)]
    )
    with pytest.raises(InvalidOption, match=sentence):
        check_columns(StructType(fields))


@pytest.mark.parametrize(
    ("use", "name", "sentence"),
    [
        ("history stream", "startingOffsets", "did you mean 'since'"),
        ("read", "endingTimestamp", "did you mean 'until'"),
        ("read", "dbtable", "did you mean 'what'"),
        ("claim stream", "startingOffsets", "a claim stream takes what waits"),
        ("claim stream", "maxOffsetsPerTrigger", "did you mean 'maxMessagesPerTrigger'"),
        ("history stream", "maxOffsetsPerTrigger", "did you mean 'maxRowsPerTrigger'"),
        ("publish stream", "topic", "did you mean 'queue'"),
        ("write", "kafka.bootstrap.servers", "did you mean 'url'"),
    ],
)
def test_the_words_of_other_sources_are_answered_with_ours(
    use: Use, name: str, sentence: str
) -> None:
    with pytest.raises(InvalidOption, match=f"there is no option '{name}': {sentence}"):
        parse({"url": "postgresql://h/d", name: "x"}, use)
