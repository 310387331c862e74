"""Values that a program may pass by accident or on purpose, by the name of the parameter."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

from hypothesis import strategies as st

from laneway import Policy


class Word(StrEnum):
    """Drivers write an enum by its name; its value is what is meant."""

    HOSTILE = "a value"
    COMPLETED = "completed"
    ALL = "all"
    ONCE = "once"
    DEAD = "dead"


class Number(IntEnum):
    SEVEN = 7


class Text(str):
    """Looks like text, and is some."""


class Length(timedelta):
    pass


class Moment(datetime):
    pass


HUGE = 10**5000
HOUR = timedelta(hours=1)
QUOTES = [
    *("a'b", 'a"b', "a`b", "a\\", "\\'", "'; drop table message; --", "$$", "$1 %s %(x)s :x ?"),
    *("{}", "[]", "null", "NULL", "../../etc/passwd", "%", "_", "a/b", "a.b", "#", "-", "--"),
]
ODD = [
    "\x1b[31m",
    "\x1b]0;x\x07",
    "\r\n",
    "\u202e",
    "\ufeff",
    "e\u0301",
    "\u2028",
    " ",
    "\x7f",
    "\t",
]
SIZES = ["x" * 63, "x" * 64, "x" * 255, "x" * 256, "é" * 127, "é" * 128, "💧" * 63, "💧" * 64]
BROKEN = ["", "\0", "a\0b", "\ud800", "a\udfffb", "\ud83d" + "x"]
NO_TEXT: list[Any] = [
    None,
    0,
    5,
    1.5,
    True,
    False,
    b"",
    b"bytes",
    [],
    {},
    (),
    object(),
    Text("sub"),
]

texts = st.sampled_from([*QUOTES, *ODD, *SIZES, *BROKEN, Word.HOSTILE]) | st.text(max_size=300)
words = texts | st.sampled_from(NO_TEXT)
free = words | st.sampled_from(["x" * 100_000, "💧" * 20_000, "\0" * 20_000])

lengths = (
    st.sampled_from(
        [
            *(
                timedelta(0),
                timedelta(microseconds=1),
                HOUR,
                timedelta(days=365),
                timedelta(days=36_600),
            ),
            *(timedelta(days=36_601), timedelta.max, timedelta.min, -timedelta(microseconds=1)),
            *(None, 0, 5, 1.5, "1h", float("nan"), Length(seconds=5), HUGE),
        ]
    )
    | st.timedeltas()
)
moments = st.sampled_from(
    [
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone(-timedelta(hours=14))),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=14))),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(999, 12, 31, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(2100, 2, 28, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(2026, 1, 1),  # noqa: DTZ001, what is refused
        datetime.min,  # noqa: DTZ901
        datetime.max,  # noqa: DTZ901
        Moment(2030, 1, 1, tzinfo=UTC),
        *(None, 5, "2026-01-01", "now", 1e300, HOUR),
    ]
) | st.datetimes(timezones=st.timezones() | st.just(UTC))
numbers: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(0, 1, -1, 9, 10, 10_000, 10_001, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30),
        *(HUGE, -HUGE, True, None, 1.5, "5", float("nan"), Decimal(3), Number.SEVEN, [], b"1"),
    ]
)
reals = numbers | st.sampled_from(
    [
        1e-6,
        1e-7,
        1e9,
        1e10,
        0.01,
        1000.0,
        float("inf"),
        -float("inf"),
        5e-324,
        1e308,
        Decimal("1.5"),
    ]
)


def nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def _looped() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
SIZE = 20_000  # the client's max_payload
payloads = json_values | st.sampled_from(
    [
        *(b"", b"\0", b"\xff\xfe", bytes(range(256)), b"'\"\\" * 100, "", "\0", "\ud800", HUGE),
        *(b"x" * SIZE, b"x" * (SIZE + 1), "é" * (SIZE // 2), "é" * (SIZE // 2) + "x"),
        *("\0" * SIZE, b"'" * SIZE, nested(99), nested(100), nested(101), nested(50_000)),
        *(_looped(), {1: 2}, {None: 1}, {"a": float("inf")}, {"a": {1, 2}}, object(), 1j, ...),
        *(Word.HOSTILE, Number.SEVEN, Decimal("NaN"), HOUR, memoryview(b"abc")),
        *({"\0": "\0"}, {"a": "\ud800"}, {"\udfff": 1}, 2**64, -(2**63) - 1, 10**4299, 1e-320),
    ]
)
headers = (
    st.dictionaries(texts, json_values, max_size=3)
    | payloads
    | st.sampled_from([{"a": "x" * 100_000}, {str(n): n for n in range(1000)}])
    | st.dictionaries(st.just("laneway-keep-result"), json_values, min_size=1)
)

BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("channel", "queue", "key", "kind", "name", "topic", "prefix"), words),
    **dict.fromkeys(("reason", "error"), free | st.just(ValueError("\ud800\0" * 20_000))),
    "error_type": free | st.sampled_from(["ValueError", "laneway.errors.DecodeError"]),
    **dict.fromkeys(("delay", "expires_in", "key_window", "keep", "grace", "every"), lengths),
    **dict.fromkeys(("lease", "length", "backoff_initial", "backoff_max", "idle"), lengths),
    "on_duplicate": words | st.sampled_from(["keep", "replace", "debounce", None]),
    "key_scope": words | st.sampled_from(["kind", "channel", "queue"]),
    "debounce_for": lengths,
    "keep_result": lengths | st.sampled_from([1e-7, 1e300, -0.0, Number.SEVEN]),
    "timeout": st.sampled_from([timedelta(0), -HOUR, timedelta.min, 0, "x", HUGE]),
    **dict.fromkeys(("at", "expires_at", "start", "since", "until"), moments),
    **dict.fromkeys(("priority", "max_attempts", "limit", "history_days", "most"), numbers),
    **dict.fromkeys(("message_id", "concurrency", "burst", "backlog"), numbers),
    **dict.fromkeys(("rate", "weight"), reals),
    "share": reals | st.floats(0, 1) | st.sampled_from([-0.0, 1.0, 1 + 1e-15, "0.5"]),
    **dict.fromkeys(("payload", "state", "result"), payloads),
    "headers": headers,
    "content_type": free | st.sampled_from(["application/json", "text/plain", "x" * 255]),
    "cron": words | st.sampled_from(["* * * * *", "0 0 30 2 *", "@daily", "٣ * * * *", "* " * 200]),
    "zone": words
    | st.sampled_from(["Europe/Zurich", "/etc/passwd", "Europe", "posixrules", "UTC"]),
    "catch_up": words | st.sampled_from(["skip", "all", Word.ONCE]),
    "history": words | st.sampled_from(["failures", Word.ALL]),
    **dict.fromkeys(("duration", "step", "retry_after"), lengths),
    **dict.fromkeys(("before", "count", "audit_days"), numbers),
    **dict.fromkeys(("actor", "note"), words),
    "by": words | st.sampled_from(["time", "starts"]),
    "turn": lengths,
    **dict.fromkeys(("adapt", "breaker", "times"), words | numbers | st.none() | st.booleans()),
    "limited": st.sampled_from([True, False, None, 0, 1, "yes", 2, []]),
    "running": st.sampled_from([True, False, None, 0, 1, "yes", 2, []]),
    "paused": st.sampled_from([True, False, None, 0, 1, "yes", 2, []]),
    "position": words | st.sampled_from(["1.0", "1.1", f"{2**63}.0", "-1.-1", "1", "1.0.0", "٣.٣"]),
    "after": numbers | st.just("x"),
    **dict.fromkeys(("queues", "channels", "kinds"), st.lists(words, max_size=3) | words),
    "limits": st.lists(words, max_size=5) | st.lists(texts, max_size=4).map(tuple) | words,
    "what": st.lists(words | st.sampled_from(["completed", Word.COMPLETED]), max_size=3) | words,
    "ids": st.lists(numbers, max_size=3) | numbers | words,
    "policy": st.builds(Policy, reals, reals, reals, reals, reals) | words,
    "policies": st.dictionaries(
        texts, st.builds(Policy, reals, reals, reals, reals, reals) | words, max_size=2
    )
    | words,
}

# What a call needs, where something else of it is hostile.
HARMLESS: dict[str, Any] = {
    "payload": 1,
    "name": "harmless",
    "message_id": 1,
    "ids": [1],
    "policies": {},
    "policy": Policy(),
    "every": HOUR,
    "share": 0.5,
}


@st.composite
def arguments(draw: Any, parameters: frozenset[str], required: frozenset[str]) -> dict[str, Any]:
    """One or two parameters with something hostile, the others as they should be."""
    some = st.lists(st.sampled_from(sorted(parameters)), min_size=1, max_size=2, unique=True)
    chosen = draw(some)
    drawn = {name: HARMLESS[name] for name in sorted(required) if name in HARMLESS}
    return drawn | {name: draw(BY_NAME[name]) for name in chosen}
