"""Payloads with a schema: from types, tasks and samples, written as structs and read as structs."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, Field, RootModel
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, struct
from pyspark.sql.types import StructType

from laneway import Queue, Tasks
from laneway.errors import InvalidOption, SparkFailed
from laneway.spark import payload_schema, read_payload
from tests.place import Place
from tests.spark.conftest import load
from tests.spark.test_publishing import write


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Pair(NamedTuple):
    a: int
    b: str


class Line(TypedDict):
    sku: str
    count: int


@dataclass
class Order:
    id: int
    total: Decimal
    paid_at: datetime | None = None
    day: date = date(2026, 5, 1)
    took: timedelta = timedelta(0)
    weight: float | None = None
    gift: bool = False
    uuid: UUID | None = None
    raw: bytes = b""
    lines: list[Line] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    size: Literal["s", "m"] = "s"
    pair: Pair | None = None
    mixed: int | str = 1
    anything: Any = None
    parent: "Order | None" = None


_LINES = "lines:array<struct<sku:string,count:bigint>>"
_ORDER = (
    "struct<id:bigint,total:decimal(38,18),paid_at:timestamp,day:date,took:double,weight:double,"
    f"gift:boolean,uuid:string,raw:binary,{_LINES},names:map<string,bigint>,colour:string,"
    "level:bigint,size:string,pair:array<string>,mixed:string,anything:string,parent:string>"
)


class Model(BaseModel):
    id: int = Field(serialization_alias="ID")
    took: timedelta = timedelta(0)
    names: dict[str, int] | None = None


class Models(RootModel[list[Model]]):
    pass


class Packed(msgspec.Struct, tag_field="kind", rename="camel"):
    first_name: str
    age: int | None = None


def shown(of: Any) -> str:
    return payload_schema(of).simpleString()


def test_the_schema_of_a_type() -> None:
    assert shown(Order) == _ORDER
    assert shown(Line) == "struct<sku:string,count:bigint>"
    assert shown(Model) == "struct<ID:bigint,took:string,names:map<string,bigint>>"
    assert shown(Packed) == "struct<kind:string,firstName:string,age:bigint>"


def test_the_schema_of_a_tasks_arguments() -> None:
    tasks = Tasks(queue="receipts")

    @tasks.declare
    def send(order: Line, copy: bool = False, note=None) -> None:  # type: ignore[no-untyped-def]
        """Of another program."""

    expected = "struct<order:struct<sku:string,count:bigint>,copy:boolean,note:string>"
    assert shown(send) == expected


def test_the_schema_of_a_sample() -> None:
    sample = [
        b'{"id": 1, "x": 1, "tags": [], "who": null, "none": null}',
        '{"id": 2, "x": 0.5, "tags": [null, "a"], "who": {"a": 1}, "mixed": 1}',
        {"id": 3, "who": {"b": [1, 2.5]}, "mixed": "text", "big": 2**70},
    ]
    assert shown(sample) == (
        "struct<id:bigint,x:double,tags:array<string>,who:struct<a:bigint,b:array<double>>,"
        "none:string,mixed:string,big:string>"
    )


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ([], "the sample has no payloads"),
        ([b"[1]"], "not a JSON object but a list"),
        (int, "has no fields"),
        (Models, "has no fields"),
        (list[int], "has no fields"),
        (17, "a int has no schema"),
        (b"{}", "a bytes has no schema"),
    ],
)
def test_what_has_no_schema(of: Any, why: str) -> None:
    with pytest.raises(InvalidOption, match=why):
        payload_schema(of)


def test_structs_are_written_and_read_back_equal(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    ddl = (
        "id bigint, total decimal(12,2), at timestamp, local timestamp_ntz, day date, raw binary, "
        "x double, ok boolean, lines array<struct<sku:string,count:int>>, names map<string,int>"
    )
    noon = datetime.fromisoformat("2026-05-01T12:00:00.123456")
    rows = [
        (
            1,
            Decimal("12.50"),
            noon,
            noon,
            noon.date(),
            b"\xff\x00",
            0.1,
            True,
            [("a", 1)],
            {"k": 2},
        ),
        (2, None, None, None, None, None, None, None, None, None),
    ]
    given = spark.createDataFrame(rows, ddl)
    write(
        given.select(struct("*").alias("payload"), col("total").isNull().alias("h")).drop("h"),
        place,
    )
    messages = load(spark, place, what="messages")
    found = read_payload(messages, ddl).select("payload.*", "payload_error")
    assert found.drop("payload_error").schema.simpleString() == given.schema.simpleString()
    assert sorted(map(tuple, found.collect())) == [(*row, None) for row in rows]
    assert {message.json()["total"] for message in queue.claim(2)} == {"12.50", None}
    assert payload_schema(messages) == payload_schema(
        [b'{"id": 1, "total": "", "at": "", "local": "", "day": "", "raw": "", "x": 0.1, '
         b'"ok": true, "lines": [{"sku": "", "count": 1}], "names": {"k": 2}}']
    )  # fmt: skip


def test_what_is_no_json_of_the_schema_says_so_and_stays(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    queue.publish_many([{"id": 1, "more": 2}, {}, {"id": "x"}, b"\xff", "text"])
    queue.publish(b"{broken", content_type="application/json")
    found = read_payload(load(spark, place, what="messages"), "id bigint").orderBy("id")
    rows = [(row.payload and tuple(row.payload), row.payload_error) for row in found.collect()]
    assert rows == [
        ((1,), None),
        ((None,), None),
        (None, 'no JSON of this schema: {"id":"x"}'),
        (None, "the payload is application/octet-stream, not JSON"),
        (None, "the payload is text/plain; charset=utf-8, not JSON"),
        (None, "no JSON of this schema: {broken"),
    ]
    with pytest.raises(SparkFailed, match="NONSENSE"):
        read_payload(found, "id nonsense")


def test_the_arguments_of_a_task_however_they_travel(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    tasks = Tasks()

    @tasks.declare
    def send(to: str, copies: int = 1) -> None:
        """Of another program."""

    tasks.bind(queue)
    send.publish("a")
    send.publish('b "quoted"', copies=2)
    queue.publish(b'"c"', content_type="application/json")
    queue.publish(b"\xff")
    read = read_payload(load(spark, place, what="messages"), send).orderBy("id")
    assert read.schema["payload"].dataType == payload_schema(send)
    assert isinstance(read.schema["payload"].dataType, StructType)
    found = [row.payload and tuple(row.payload) for row in read.collect()]
    assert found == [("a", None), ('b "quoted"', 2), ("c", None), None]
