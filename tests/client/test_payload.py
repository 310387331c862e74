"""Payloads there and back, the same with msgspec and without."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID, uuid4

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import DecodeError, InvalidPayload, PayloadTooLarge, payload
from penstock.payload import decode, encode
from penstock.plain import plain

JSON = "application/json"


@pytest.fixture(params=["msgspec", "stdlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "stdlib":
        monkeypatch.setattr(payload, "msgspec", None)


class Colour(Enum):
    RED = "red"


class Size(StrEnum):
    BIG = "big"


@dataclass
class Line:
    article: str
    count: int = 1


@dataclass(frozen=True)
class Order:
    id: UUID
    lines: list[Line]
    at: datetime
    day: date
    price: Decimal
    colour: Colour
    size: Size
    wait: timedelta
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    pair: tuple[int, float] = (1, 2.0)
    raw: bytes = b""
    extra: dict[str, Any] = field(default_factory=dict)
    mode: Literal["a", "b"] = "a"


ORDER = Order(
    uuid4(),
    [Line("a", 2), Line("b")],
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    date(2026, 3, 29),
    Decimal("1.10"),
    Colour.RED,
    Size.BIG,
    timedelta(milliseconds=1500),
    None,
    {"x"},
    (3, 4.5),
    b"\0\xff",
    {"n": [1, None, True]},
    "b",
)


class Struct(msgspec.Struct):
    id: int
    lines: list[str] = []


class Model(pydantic.BaseModel):
    id: int
    at: datetime


class Parcel(TypedDict):
    weight: float
    note: NotRequired[str]


@pytest.mark.usefixtures("library")
def test_bytes_and_text_stay_what_they_are() -> None:
    assert encode(b"\0\xff") == (b"\0\xff", "application/octet-stream")
    assert encode(bytearray(b"x"))[0] == b"x"
    assert encode("ü") == ("ü".encode(), "text/plain; charset=utf-8")
    assert decode(b"\0\xff", JSON, bytes) == b"\0\xff"
    assert decode("ü".encode(), "text/plain", str) == "ü"
    assert decode(b'"x"', JSON, str) == "x"
    with pytest.raises(DecodeError, match="UTF-8"):
        decode(b"\xff", "text/plain", str)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (ORDER, Order),
        (Struct(1, ["a"]), Struct),
        (Model(id=1, at=datetime.now(UTC)), Model),
        ({"a": [1, 2.5, None, True, "ü\n"]}, dict),
        ([Line("a")], list[Line]),
        ({"x": Line("y", 3)}, dict[str, Line]),
        ({"weight": 1.0}, Parcel),
        (2**70, int),
        (None, None),
        ([1, "a"], list[int | str]),
    ],
)
def test_round_trips(value: Any, kind: Any) -> None:
    data, content_type = encode(value)
    assert content_type == JSON
    assert decode(data, content_type, kind) == value


def test_both_libraries_write_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = encode(ORDER)
    monkeypatch.setattr(payload, "msgspec", None)
    assert encode(ORDER) == fast


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8"))
    # A float may be written in two ways, which read the same.
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_any_json_comes_back(value: Any) -> None:
    if isinstance(value, str):
        value = [value]
    data, content_type = encode(value)
    assert decode(data, content_type, Any) == value
    assert json.loads(payload._ENCODER.encode(plain(value))) == value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "nan"),
        ({"a": [float("inf")]}, "inf"),
        ({1: 2}, "keys are text, not int"),
        ({"a": object()}, "builtins.object"),
        (endless(), "nested deeper than 100"),
        (["\ud800"], "surrogate"),
        ("\ud800", "surrogate"),
        (lambda: 1, "function"),
    ],
)
def test_what_json_has_no_word_for(value: Any, text: str) -> None:
    with pytest.raises(InvalidPayload, match=text):
        encode(value)


def test_size() -> None:
    assert encode(b"x" * 10, 10)
    with pytest.raises(PayloadTooLarge, match="11 bytes, 10 are allowed"):
        encode(b"x" * 11, 10)


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"{", dict, "not JSON"),
        (b"\xff", dict, "not JSON"),
        (b"NaN", float, "NaN"),
        (b"[" * 100_000, list, "deeply"),
        (b"[]", dict, "is no dict"),
        (b'{"article": 5}', Line, "Line.article: 5 is no str"),
        (b"{}", Line, "Line needs article"),
        (b'"1"', int, "is no int"),
        (b"true", int, "is no int"),
        (b"{}", Parcel, "needs weight"),
        (b'"blue"', Colour, "Colour"),
        (b'"x"', UUID, "UUID"),
        (b'"x"', Decimal, "Decimal"),
        (b'"c"', Literal["a", "b"], "is no"),
        (b"[1]", tuple[int, int], "is no tuple"),
        (b"{}", int | str, "none of int, str"),
        (b"{}", Struct, "id"),
        (b"{}", Model, "id"),
        (b"1", object, None),
        (b"1", complex, "cannot decode into complex"),
    ],
)
def test_what_cannot_be_decoded(data: bytes, kind: Any, text: str | None) -> None:
    if text is None:
        assert decode(data, JSON, kind) == 1
        return
    with pytest.raises(DecodeError, match=text):
        decode(data, JSON, kind)
