"""The parameters of a function that its message carries: how they are written and read.

A call of the only required parameter travels as that value. Every other call travels as a JSON
object of the arguments by name, and says so in its content type.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, is_typeddict

from laneway.client.shared.message_fields import MessageFields
from laneway.convert import convert, never_decodable, reader_of
from laneway.errors import DecodeError, InvalidCall, InvalidOption, shown
from laneway.payload import (
    ARGUMENTS,
    JSON,
    as_published,
    decode,
    decode_json,
    encode,
    encode_json,
    holds_arguments,
)
from laneway.to_json import plain

_NULL = b"null"
_ANY_SIZE = 2**62  # the client that publishes has the limit


@dataclass(frozen=True, slots=True)
class CarriedParameters:
    """``hints`` by name, in order. ``rest`` is the annotation of ``**kwargs``, None without them;
    ``local`` are those with a default that no payload can hold, which keep it; ``all_rest`` says
    that nothing but ``**kwargs`` gets the payload."""

    owner: str
    hints: Mapping[str, Any]
    required: frozenset[str]
    rest: Any = None
    local: frozenset[str] = frozenset()
    all_rest: bool = False

    @property
    def bare(self) -> str | None:
        """The parameter whose value can be the whole payload: the only required one, or the first
        if none is required."""
        if len(self.required) > 1:
            return None
        return next(iter(self.required or self.hints), None)

    def read(self, source: MessageFields) -> dict[str, object]:
        """The arguments by name; raises DecodeError."""
        if holds_arguments(source.content_type) or len(self.required) > 1:
            return self.named(decode_json(source.payload))
        if self.all_rest and not _is_null(source):
            return self.named(decode_json(source.payload))
        bare = self.bare
        if bare is None or (not self.required and _is_null(source)):
            return {}
        return {bare: self.value(bare, source)}

    def value(self, name: str, source: MessageFields) -> object:
        """The whole payload as the parameter ``name``."""
        hint = self.hints[name]
        if hint is Parameter.empty:
            return as_published(source.payload, source.content_type)
        try:
            return decode(source.payload, source.content_type, hint)
        except DecodeError as error:
            if not self._looks_named(source):
                raise
            raise DecodeError(
                f"{error}; it was read as {name!r}: if it holds arguments by name, publish it with "
                f"the content type {ARGUMENTS!r}"
            ) from error

    def named(self, value: object) -> dict[str, object]:
        """The arguments of a JSON object; raises DecodeError."""
        if not isinstance(value, dict):
            raise DecodeError(
                f"{self.owner} takes its arguments as a JSON object by name "
                f"({', '.join(self.hints)}), not as {shown(value)}"
            )
        found = {name: self._one(name, part) for name, part in value.items()}
        if missing := [name for name in self.hints if name in self.required - found.keys()]:
            raise DecodeError(f"{self.owner} needs {', '.join(map(repr, missing))}")
        return found

    def write(self, given: Mapping[str, object]) -> tuple[bytes, str]:
        """The payload and its content type. Raises what the worker would: InvalidPayload for a
        value that is no JSON, InvalidCall for one that does not fit its annotation."""
        bare = self.bare
        try:
            if bare is not None and set(given) == {bare}:
                value = given[bare]
                if value is not None or self.required:
                    return self._written_bare(bare, value)
            if not given and not self.hints:
                return _NULL, JSON
            simple = {name: plain(value) for name, value in given.items()}
            self.named(simple)
            return encode_json(simple), ARGUMENTS
        except DecodeError as error:
            raise InvalidCall(f"{self.owner}: {error}") from error

    def check(self) -> None:
        """Raises InvalidOption if no payload can hold a required one, and Unresolved if an
        annotation names something undefined."""
        for name, hint in self.hints.items():
            if hint is Parameter.empty:
                continue
            why = never_decodable(hint)
            if why and (name in self.required or name == self.bare):
                raise InvalidOption(f"{self.owner} can never be given its {name!r}: {why}")

    def misfit(self, reader: "CarriedParameters") -> str | None:
        """Why calls that are written by these parameters cannot be read by those; None if they may
        be: some types are known to differ only when a value comes."""
        if len(self.hints) == 1 and self.bare is not None and reader.bare is not None:
            why = _differ(self.hints[self.bare], reader.hints[reader.bare])
            return why and f"which {why}"
        if len(self.hints) == 1:
            return None  # an object may have all fields, and a function may read the message itself
        known = self.hints.keys() & reader.hints.keys()
        for name in sorted(known):
            if why := _differ(self.hints[name], reader.hints[name]):
                return f"whose {name!r} {why}"
        if missing := sorted(reader.required - self.hints.keys()):
            return f"which needs {missing[0]!r}"
        if reader.rest is None and (unknown := sorted(self.hints.keys() - known)):
            return f"which has no parameter {unknown[0]!r}"
        return None

    def _written_bare(self, name: str, value: object) -> tuple[bytes, str]:
        hint = self.hints[name]
        if hint is Parameter.empty or hint is Any or hint is object:
            return encode(value, _ANY_SIZE)
        reader = reader_of(hint)
        is_bytes = isinstance(value, bytes | bytearray | memoryview)
        if (reader.text and isinstance(value, str)) or (reader.raw and is_bytes):
            data, content_type = encode(value, _ANY_SIZE)
            decode(data, content_type, hint)
            return data, content_type
        simple = plain(value)
        convert(simple, hint)
        return encode_json(simple), JSON

    def _one(self, name: str, part: object) -> object:
        hint = self.hints.get(name, self.rest)
        if hint is None:
            raise DecodeError(f"{self.owner} has no parameter {name!r}")
        if hint is Parameter.empty:
            return part
        try:
            return convert(part, hint)
        except DecodeError as error:
            raise DecodeError(f"{name}: {error}") from error

    def _looks_named(self, source: MessageFields) -> bool:
        if len(self.hints) < 2 or not source.content_type.startswith(JSON):
            return False
        try:
            value = decode_json(source.payload)
        except DecodeError:
            return False
        return isinstance(value, dict) and self.required <= value.keys() <= self.hints.keys()


_LOOSE = (bytes, dict, Mapping, object, Any, Parameter.empty)


def _differ(written: Any, read: Any) -> str | None:
    """A class of the same name is taken for the producer's own copy."""
    if not isinstance(written, type) or not isinstance(read, type):
        return None
    if any(one in _LOOSE or is_typeddict(one) for one in (written, read)):
        return None
    if written.__name__ == read.__name__:
        return None
    if issubclass(written, read) or issubclass(read, written) or {written, read} == {int, float}:
        return None
    if (written is str and reader_of(read).text) or (read is str and reader_of(written).text):
        return None
    return f"takes {read.__qualname__}, not {written.__qualname__}"


def _is_null(source: MessageFields) -> bool:
    return source.content_type.startswith(JSON) and source.payload.strip() == _NULL
