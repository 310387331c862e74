"""What a frame may hold: what the library takes, whatever a column of Spark can be."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from laneway.errors import InvalidInput, InvalidOption
from laneway.spark.options import parse
from laneway.spark.publish.values import shaped
from laneway.spark.read.tables import chosen

_INSTANT = pa.timestamp("us", tz="UTC")
_YEAR_10000 = 253_402_300_800_000_000
_NOT_UTF8 = pa.array([b"\xff"]).view(pa.string())


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("at", pa.array([None, _YEAR_10000], _INSTANT), "outside of the years 1 to 9999"),
        ("at", pa.array([-(2**63)], _INSTANT), "outside of the years 1 to 9999"),
        ("at", pa.array([-62_135_596_800_000_001], _INSTANT), "outside of the years 1 to 9999"),
        ("expires_at", pa.array([2**63 - 1], _INSTANT), "outside of the years 1 to 9999"),
        ("headers", pa.array(["{}", "[1]"]), "no JSON object"),
        ("headers", pa.array(["null"]), "no JSON object"),
        ("headers", pa.array([""]), "no JSON object"),
        ("headers", pa.array(["[" * 100_000]), "no JSON object"),
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
