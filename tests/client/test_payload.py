"""Payloads there and back, the same with msgspec and without."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping, MutableSequence
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID, uuid4

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway import payload
from laneway.convert import never_decodable
from laneway.errors import DecodeError, InvalidPayload, PayloadTooLarge
from laneway.payload import decode, encode
from laneway.to_json import plain

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
        ({"a": object()}, "an object cannot be written"),
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
        (b"[]", dict, "is not a dict"),
        (b'{"article": 5}', Line, "Line.article: 5 is not a str"),
        (b"{}", Line, "Line needs article"),
        (b'"1"', int, "is not an int"),
        (b"true", int, "is not an int"),
        (b"{}", Parcel, "needs weight"),
        (b'"blue"', Colour, "Colour"),
        (b'"x"', UUID, "UUID"),
        (b'"x"', Decimal, "Decimal"),
        (b'"c"', Literal["a", "b"], "is no"),
        (b"[1]", tuple[int, int], "is not a tuple"),
        (b"{}", int | str, "is not one of int, str"),
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


@dataclass
class CardPayment:
    amount: int


@dataclass
class Refund:
    amount: int
    reason: str = "none"
    original: int = 0


@dataclass
class Cancel:
    id: int


@dataclass
class Ship:
    id: int


@dataclass
class Sent:
    id: int
    kind: Literal["sent"] = "sent"


@dataclass
class Lost:
    id: int
    kind: Literal["lost"] = "lost"


class Small(msgspec.Struct):
    x: int


class Large(msgspec.Struct):
    x: int
    y: int = 0


class SmallModel(pydantic.BaseModel):
    x: int


class LargeModel(pydantic.BaseModel):
    x: int
    y: int = 0


class Summed(pydantic.BaseModel):
    x: int
    y: int = 0

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def z(self) -> int:
        return self.x + self.y


def there_and_back(value: Any, kind: Any) -> Any:
    return decode(*encode(value), kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Refund(100, "broken", 7), CardPayment | Refund),
        (Refund(100, "broken", 7), Refund | CardPayment),
        (CardPayment(1), CardPayment | Refund),
        (CardPayment(1), Refund | CardPayment),
        ([Refund(1), CardPayment(2)], list[CardPayment | Refund]),
        ([Refund(1)], list[CardPayment] | list[Refund]),
        (Lost(1), Sent | Lost),
        (Large(1, 2), Small | Large),
        (Small(1), Large | Small),
        (LargeModel(x=1, y=2), SmallModel | LargeModel),
        (SmallModel(x=1), LargeModel | SmallModel),
        (Summed(x=1, y=2), SmallModel | Summed),
        (Line("a"), dict[str, Any] | Line),
        ({"article": "a", "more": 1}, Line | dict[str, Any]),
        ([date(2024, 1, 1), datetime(2024, 1, 1)], list[datetime | date]),  # noqa: DTZ001
        ([date(2024, 1, 1), datetime(2024, 1, 1)], list[date | datetime]),  # noqa: DTZ001
        ([1, 1.5], list[float | int]),
        ([UUID(int=1), "x"], list[UUID | str]),
        ([1, 2], list[int] | list[float]),
    ],
)
def test_a_union_gives_back_the_member_that_was_published(value: Any, kind: Any) -> None:
    back = there_and_back(value, kind)
    assert back == value
    assert type(back) is type(value)
    if isinstance(value, list):
        assert [type(part) for part in back] == [type(part) for part in value]


def test_a_union_takes_the_member_that_leaves_the_least_unused() -> None:
    newer = {"amount": 1, "reason": "x", "since": "2.0"}
    assert decode(*encode(newer), CardPayment | Refund) == Refund(1, "x")


@pytest.mark.parametrize("kind", [Cancel | Ship, list[Cancel] | list[Ship], Cancel | Ship | None])
def test_a_union_whose_members_fit_alike_is_refused(kind: Any) -> None:
    value: Any = [Ship(1)] if kind == list[Cancel] | list[Ship] else Ship(1)
    with pytest.raises(DecodeError, match=r"fits .+ and .+ alike: give them a field"):
        there_and_back(value, kind)


def test_the_order_of_a_union_is_not_mixed_up_with_that_of_its_equal() -> None:
    text = str(uuid4())
    assert decode(*encode([text]), list[str | UUID]) == [text]
    assert decode(*encode([text]), list[UUID | str]) == [UUID(text)]


class Password(pydantic.BaseModel):
    text: pydantic.SecretStr = pydantic.SecretStr("")
    data: pydantic.SecretBytes = pydantic.SecretBytes(b"")


class Passwords(pydantic.BaseModel):
    all: list[Password]


class Revealed(pydantic.BaseModel):
    text: pydantic.SecretStr

    @pydantic.field_serializer("text", when_used="json")
    def reveal(self, value: pydantic.SecretStr) -> str:
        return value.get_secret_value()


SECRET = Password(text=pydantic.SecretStr("hunter22"))


@pytest.mark.parametrize(
    "value",
    [SECRET, Password(data=pydantic.SecretBytes(b"x")), Passwords(all=[SECRET]), {"a": [SECRET]}],
)
def test_a_masked_secret_is_refused(value: Any) -> None:
    with pytest.raises(InvalidPayload, match="holds a secret"):
        encode(value)


def test_stars_and_revealed_secrets_are_no_masked_ones() -> None:
    assert there_and_back(Revealed(text=pydantic.SecretStr("pw")), Revealed).text == (
        pydantic.SecretStr("pw")
    )
    stars = Titled(title="*" * 10)
    assert there_and_back(stars, Titled) == stars


UserId = NewType("UserId", int)
Name = NewType("Name", str)
T = TypeVar("T")
N = TypeVar("N", bound=int)


class Level(IntEnum):
    LOW = 1


class Span(Enum):
    WEEK = (1, 7)
    NEW_YEAR = date(2026, 1, 1)


class Point(NamedTuple):
    x: int
    y: float = 0.0


@dataclass
class Envelope(Generic[T]):
    item: T
    others: list[T]
    inner: "Envelope[T] | None" = None


@dataclass
class LineEnvelope(Envelope[Line]):
    pass


@dataclass
class SeededByDefault:
    x: int
    seed: InitVar[int] = 1


@dataclass
class Bounded(Generic[N]):
    number: N


@dataclass
class Tree:
    name: Annotated[str, "shown"]
    user: UserId
    kept: Final[int]
    children: "list[Tree]" = field(default_factory=list)
    parent: "Tree | None" = None


class Titled(pydantic.BaseModel):
    title: str = pydantic.Field(serialization_alias="Title")


class Exact(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    at: datetime
    id: UUID
    tags: set[str]


class Base64(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    data: bytes


class Anything(msgspec.Struct):
    value: Any


class Pair(msgspec.Struct, Generic[T]):
    one: T


EXACT = Exact(at=datetime(2024, 1, 1, tzinfo=UTC), id=UUID(int=7), tags={"a"})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("hello", str | None),
        ("hello", Optional[Name]),  # noqa: UP045
        ("5", str | int),
        (5, str | int),
        (None, str | None),
        (b"\xff", bytes | None),
        (None, bytes | None),
        (b"\xff", bytes | str),
        (str(UUID(int=1)), UUID | str),
        (UUID(int=1), UUID | str),
        ("text", bytes | str),
        ("text", Any),
        (b"\xff", object),
        ("hello", Annotated[str, "m"]),
        (Size.BIG, Size),
        (Size.BIG, Size | None),
        ("a", Literal["a", "b"]),
        ([True], list[Literal[True]]),
        ([Colour.RED], list[Literal[Colour.RED]]),
        (Level.LOW, Level),
        ([Span.WEEK, Span.NEW_YEAR], list[Span]),
        (3, UserId),
        (Point(1, 2.5), Point),
        ([Point(1)], list[Point]),
        (Envelope(1, [2]), Envelope[int]),
        (Envelope(Line("a"), [], Envelope(Line("b"), [])), Envelope[Line]),
        (LineEnvelope(Line("a"), []), LineEnvelope),
        (Bounded(1), Bounded),
        (SeededByDefault(1, 2), SeededByDefault),
        (Tree("a", UserId(1), 2, [Tree("b", UserId(3), 4)]), Tree),
        (1, Annotated[int, []]),
        ([1], Iterable[int]),
        ([1], MutableSequence[int]),
        ({1}, AbstractSet[int]),
        ({"a": 1}, MutableMapping[str, int]),
        (OrderedDict(a=1), OrderedDict[str, int]),
        ({"big": 1}, dict[Size, int]),
        ((), tuple[()]),
        (Titled(title="x"), Titled),
        ([Titled(title="x")], list[Titled]),
        (EXACT, Exact),
        (Base64(data=b"\xff"), Base64),
        (Pair(1), Pair[int]),
        ([Pair(UUID(int=1))], list[Pair[UUID]]),
    ],
)
def test_what_can_be_published_can_be_received(value: Any, kind: Any) -> None:
    assert never_decodable(kind) is None
    assert there_and_back(value, kind) == value


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("blue", Size, "Size"),
        (1, Literal[True], "1 is no"),
        (True, Level, "True is not a Level"),
        ([1], tuple[()], "is not a tuple"),
        (["x"], Envelope[int], "is not an Envelope"),
        (Envelope("x", []), Envelope[int], "Envelope.item: 'x' is not an int"),
        ([1, 2, 3], Point, "is not a Point"),
        (["x"], Point, "Point.x: 'x' is not an int"),
        ({"a": 1}, bytes | None, "is not bytes"),
        (Pair("x"), Pair[int], "int"),
    ],
)
def test_it_is_read_as_strictly(value: Any, kind: Any, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        there_and_back(value, kind)


class Blob(pydantic.BaseModel):
    data: bytes


class Wrapped(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    inner: Titled


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Blob(data=b"\xff"), 'Blob holds bytes that are not text: .*ser_json_bytes="base64"'),
        (Wrapped(inner=Titled(title="x")), "could not be read as Wrapped again"),
        (Anything(object()), "Anything cannot be written"),
        (timedelta(days=100_000, microseconds=1), "to the microsecond"),
    ],
)
def test_what_could_not_be_given_back_is_refused(value: Any, text: str) -> None:
    with pytest.raises(InvalidPayload, match=text):
        encode(value)


@dataclass
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x == 1:
            raise LookupError("no such x")
        if self.x == 2:
            raise OSError("the lamp is off")
        assert self.x < 100


def test_what_a_class_refuses_is_no_payload_for_it() -> None:
    with pytest.raises(DecodeError, match="the payload is not a Checked: no such x"):
        decode(b'{"x": 1}', JSON, Checked)
    with pytest.raises(DecodeError, match="Checked"):
        decode(b'{"x": 1000}', JSON, Checked)
    with pytest.raises(OSError, match="lamp"):
        decode(b'{"x": 2}', JSON, Checked)


@dataclass
class Hooked:
    hook: Callable[[], None]


@dataclass
class Seeded:
    x: int
    seed: InitVar[int]


@dataclass
class PerhapsHooked:
    hook: Callable[[], None] | None
    other: complex = 0j


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (complex, "cannot decode into complex"),
        (list[complex], "cannot decode into complex"),
        (Union[complex, Callable[[], None]], "complex.*Callable"),  # noqa: UP007
        (Seeded, "Seeded.seed is an InitVar"),
        (Hooked, "Hooked.hook: cannot decode into"),
        (dict[int, str], "the keys of JSON are text, not int"),
        (tuple[int, *tuple[str, ...]], "cannot decode into"),
        (Literal[b"x"], "cannot decode into"),
    ],
)
def test_what_can_never_be_decoded_is_known_beforehand(kind: Any, text: str) -> None:
    why = never_decodable(kind)
    assert why is not None
    assert re.search(text, why)
    with pytest.raises(DecodeError):
        decode(b"[1]" if kind == list[complex] else b"{}", JSON, kind)


def test_a_part_that_can_never_be_decoded_may_be_left_out() -> None:
    assert never_decodable(PerhapsHooked) is None
    assert decode(b'{"hook": null}', JSON, PerhapsHooked) == PerhapsHooked(None)
    with pytest.raises(DecodeError, match=r"PerhapsHooked.other: cannot decode into complex"):
        decode(b'{"hook": null, "other": 1}', JSON, PerhapsHooked)
