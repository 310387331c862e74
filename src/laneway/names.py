"""What a name may be. Checked here, so that no database ever cuts or refuses one later."""

from .errors import InvalidName, shown

NAME_BYTES = 255
SCHEMA_BYTES = 63


def check_name(what: str, value: object) -> str:
    """A queue, channel or key: non-empty text of at most 255 bytes in UTF-8, without NUL."""
    if value == "":
        raise InvalidName(f"the {what} is empty: give it a name")
    return _check_text(what, value, NAME_BYTES)


def check_kind(value: object) -> str:
    """Like a name, but the empty kind is a kind."""
    return _check_text("kind", value, NAME_BYTES)


def wake_names(queues: tuple[str, ...], kinds: tuple[str, ...] | None) -> frozenset[str]:
    """What a notification says if a message comes that a worker can take: the queue, and a kind if
    the worker takes only some."""
    if kinds is None:
        return frozenset(queues)
    return frozenset(f"{queue}\x01{kind}" for queue in queues for kind in kinds)


def check_schema(value: object) -> str:
    """PostgreSQL would cut a longer name in silence, and then look for another schema."""
    if value == "":
        raise InvalidName("the schema name is empty: give it a name")
    return _check_text("schema name", value, SCHEMA_BYTES)


def _check_text(what: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidName(f"the {what} must be str, not {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidName(
            f"the {what} {shown(value)} has half a surrogate pair and cannot be stored"
        ) from None
    if size > most:
        raise InvalidName(f"the {what} {value[:40]!r}… has {size} bytes, {most} are allowed")
    if "\0" in value:
        raise InvalidName(f"the {what} {shown(value)} has a NUL character, which cannot be stored")
    # Drivers write a StrEnum by its name, and refuse lists of mixed types.
    return value if type(value) is str else str.__str__(value)
