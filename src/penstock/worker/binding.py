"""What a handler's parameters ask for, by annotation: the payload, the message, a transaction."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_origin, get_type_hints

from penstock.client.fields import MessageFields
from penstock.convert import Unresolved, never_decodable
from penstock.drivers.given import kind_of_class
from penstock.errors import InvalidOption
from penstock.payload import as_published, decode

_UNSAID = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Binding:
    """Names of parameters, None where there is none; the ``positional`` are passed by place."""

    payload: str | None
    payload_type: Any
    message: str | None
    transaction: str | None
    transaction_type: Any
    positional: tuple[str, ...]
    alone: bool
    """Whether the payload is all there is, by place: the common case, and the fast one."""

    def arguments(
        self, source: MessageFields, message: object, transaction: object
    ) -> tuple[list[object], dict[str, object]]:
        """What to call the function with; raises DecodeError."""
        if self.alone:
            return [self._payload(source)], {}
        values: dict[str, object] = {}
        if self.payload is not None:
            values[self.payload] = self._payload(source)
        if self.message is not None:
            values[self.message] = message
        if self.transaction is not None:
            values[self.transaction] = transaction
        placed = [values.pop(name) for name in self.positional if name in values]
        return placed, values

    def _payload(self, source: MessageFields) -> object:
        if self.payload_type is not _UNSAID:
            return decode(source.payload, source.content_type, self.payload_type)
        return as_published(source.payload, source.content_type)

    def check_payload(self, name: str) -> None:
        """Raises InvalidOption if no payload at all can be what ``name``, the function, asks for,
        and Unresolved if that names what is not there."""
        if self.payload_type is _UNSAID:
            return
        if why := never_decodable(self.payload_type):
            raise InvalidOption(f"{name} can never be given its {self.payload!r}: {why}")


def bind(function: Callable[..., Any], name: str) -> Binding:
    """Reads the signature; raises InvalidOption for a parameter that nothing can be passed for."""
    hints = _hints(function, name)
    found: dict[str, str] = {}
    payload_type: Any = _UNSAID
    transaction_type: Any = None
    positional = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, _UNSAID)
        role = _role(hint)
        if role in found:
            if parameter.default is _UNSAID:
                raise InvalidOption(
                    f"{name} has no use for {parameter.name!r}: its {role} is already "
                    f"{found[role]!r}; give it a default"
                )
            continue
        found[role] = parameter.name
        if role == "payload":
            payload_type = hint
        elif role == "transaction":
            transaction_type = get_origin(hint) or hint
        if parameter.kind in _POSITIONAL:
            positional.append(parameter.name)
    binding = Binding(
        found.get("payload"),
        payload_type,
        found.get("message"),
        found.get("transaction"),
        transaction_type,
        tuple(positional),
        alone=list(found) == ["payload"] and len(positional) == 1,
    )
    with suppress(Unresolved):  # it may be defined further down; who starts looks again
        binding.check_payload(name)
    return binding


def _role(hint: Any) -> str:
    hint = get_origin(hint) or hint  # a psycopg.Connection[Any] is a Connection
    if isinstance(hint, type):
        if issubclass(hint, MessageFields):
            return "message"
        if kind_of_class(hint):
            return "transaction"
    return "payload"


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise InvalidOption(
            f"the annotations of {name} cannot be read ({error}): import what they name at run "
            "time, not only for type checkers"
        ) from error
