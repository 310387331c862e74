"""The options of ``format("laneway")``: which exist, for which use, and their valid values."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from laneway.client.shared.checks import check_lease
from laneway.client.shared.draft import check_content_type
from laneway.contract import BATCH, HIGHEST_PRIORITY
from laneway.durations import check_duration
from laneway.errors import InvalidOption
from laneway.names import check_kind, check_name, check_schema
from laneway.payload import MAX_PAYLOAD
from laneway.spelling import nearest
from laneway.stores import StoreAddress, store_address

Use = Literal["read", "write", "history stream", "claim stream", "publish stream"]

_HISTORY = frozenset[Use](("history stream",))
_CLAIMS = frozenset[Use](("claim stream",))
_STREAMS = _HISTORY | _CLAIMS
_ROWS = frozenset[Use](("read",)) | _HISTORY
_READS = _ROWS | _CLAIMS
_WRITES = frozenset[Use](("write", "publish stream"))
_ALL = _READS | _WRITES
# Spark's own options, which it passes to every source.
_OF_SPARK = frozenset(("checkpointlocation", "queryname"))
# What needs PostgreSQL, why, and what to do elsewhere.
_REFUSED: dict[Use, str] = {
    "history stream": "only there is it known that no earlier row can still appear; read with "
    "option 'since' instead",
    "claim stream": "only there is a batch recorded with its claim, so that it can be read again "
    "after a crash; run a worker instead",
    "publish stream": "only there is a batch published and recorded in one step; write in "
    "foreachBatch with an idempotency_key instead",
}
# What other sources of Spark call it, without a prefix such as kafka. or of upper case.
_ELSEWHERE = {
    **dict.fromkeys(("startingoffsets", "startingtimestamp", "startingversion"), "since"),
    **dict.fromkeys(("endingoffsets", "endingtimestamp", "endingversion"), "until"),
    **dict.fromkeys(("bootstrap.servers", "host", "user", "password", "driver"), "url"),
    **dict.fromkeys(("subscribe", "subscribepattern", "assign", "topic"), "queue"),
    **dict.fromkeys(("dbtable", "table", "query"), "what"),
    **dict.fromkeys(("partitioncolumn", "numpartitions", "minpartitions"), "rowsPerPartition"),
    **dict.fromkeys(("group.id", "groupidprefix", "consumer"), "stream"),
}
_PER_TRIGGER = ("maxoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger")
_LARGEST = 2**31 - 1
_WHOLE = re.compile(r"\s*-?[0-9]{1,18}\s*")
_LENGTH = re.compile(r"\s*([0-9]{1,7})([smhd])\s*")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _whole(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        number = int(text) if _WHOLE.fullmatch(text) else None
        if number is None or not least <= number <= most:
            raise InvalidOption(
                f"option {name!r} is {text!r}: it must be a number from {least:,} to {most:,}"
            )
        return number

    return read


def _one_of(*words: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text.lower() not in words:
            raise InvalidOption(f"option {name!r} is {text!r}: it must be {' or '.join(words)}")
        return text.lower()

    return read


def _time(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(
            f"option {name!r} is {text!r}: write a time like 2026-05-01T12:00:00+02:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _length(name: str, text: str) -> timedelta:
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise InvalidOption(f"option {name!r} is {text!r}: write a duration like 30s, 5m, 2h or 1d")
    return check_duration(f"option {name!r}", timedelta(**{_UNITS[found[2]]: int(found[1])}))


def _lease(name: str, text: str) -> timedelta:
    return check_lease(_length(name, text))


def _name(name: str, text: str) -> str:
    return check_name(name, text)


@dataclass(frozen=True)
class Option:
    """One option: how its text is parsed, and for which uses it exists."""

    name: str
    read: Callable[[str, str], Any]
    uses: frozenset[Use]
    default: Any = None


OPTIONS = (
    Option("url", lambda _, text: text, _ALL),
    Option("schema", lambda _, text: check_schema(text), _ALL, "laneway"),
    Option("what", _one_of("history", "messages", "dead_letters", "claims"), _READS),
    Option("queue", _name, _ALL),
    Option("channel", _name, _ROWS | _WRITES),
    Option("kind", lambda _, text: check_kind(text), _ROWS | _WRITES),
    Option("since", _time, _ROWS),
    Option("until", _time, frozenset(("read",))),
    Option("rowsPerPartition", _whole(1, _LARGEST), _READS),
    Option("transport", _one_of("auto", "adbc", "copy"), _READS, "auto"),
    Option("maxRowsPerTrigger", _whole(1, _LARGEST), _HISTORY),
    Option("maxMessagesPerTrigger", _whole(1, BATCH), _CLAIMS, BATCH),
    Option("stream", _name, _STREAMS),
    Option("patience", _length, _HISTORY, timedelta(days=7)),
    Option("lease", _lease, _CLAIMS, timedelta(minutes=5)),
    Option("poll", _length, _STREAMS, timedelta(seconds=1)),
    Option("idempotency_key", _name, frozenset(("write",))),
    Option("content_type", lambda _, text: check_content_type(text), _WRITES),
    Option("priority", _whole(0, HIGHEST_PRIORITY), _WRITES),
    Option("max_attempts", _whole(1, _LARGEST), _WRITES),
    Option("max_payload", _whole(1, _LARGEST), _WRITES, MAX_PAYLOAD),
)


@dataclass(frozen=True)
class SparkOptions:
    """The checked options of one read or write."""

    address: StoreAddress
    values: Mapping[str, Any] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def parse(given: Mapping[str, str], use: Use) -> SparkOptions:
    """Refuses an option that does not exist or does not fit the use."""
    known = {option.name.lower(): option for option in OPTIONS if use in option.uses}
    for name in given:
        if name.lower() not in known and name.lower() not in _OF_SPARK:
            raise InvalidOption(_unknown(name, use, list(known.values())))
    texts = {name.lower(): text for name, text in given.items()}
    values = {
        option.name: option.read(option.name, texts[key]) if key in texts else option.default
        for key, option in known.items()
    }
    address = _address(values["url"], values["schema"])
    if address.dialect != "postgresql":
        _check_without_postgresql(address.dialect, use, values.get("transport", "auto"))
    return SparkOptions(address, values)


def _address(url: str | None, schema: str) -> StoreAddress:
    """From the option, else from the environment of this process."""
    chosen = url or os.environ.get("LANEWAY_URL")
    if not chosen:
        raise InvalidOption(
            "option 'url' is missing: set it, or set LANEWAY_URL for Spark's processes"
        )
    return store_address(chosen, schema)


def _check_without_postgresql(dialect: str, use: Use, transport: str) -> None:
    if use in _REFUSED:
        raise InvalidOption(f"a {use} needs PostgreSQL, not {dialect}: {_REFUSED[use]}")
    if transport != "auto":
        raise InvalidOption(f"option 'transport' is {transport!r}: that is for PostgreSQL only")


def _unknown(name: str, use: Use, known: list[Option]) -> str:
    elsewhere = [option for option in OPTIONS if option.name.lower() == name.lower()]
    if elsewhere:
        return f"option {elsewhere[0].name!r} does not exist for a {use}"
    names = [option.name for option in known]
    ours = _our_word(name.lower().removeprefix("kafka."), use)
    if ours in ("since", "until") and use == "claim stream":
        return f"there is no option {name!r}: a claim stream takes what waits, as a worker does"
    near = ours if ours in names else nearest(name, names)
    hint = f"did you mean {near!r}?" if near else f"the options of a {use} are {json.dumps(names)}"
    return f"there is no option {name!r}: {hint}"


def _our_word(name: str, use: Use) -> str:
    if name in _PER_TRIGGER:
        return "maxMessagesPerTrigger" if use == "claim stream" else "maxRowsPerTrigger"
    return _ELSEWHERE.get(name, "")
