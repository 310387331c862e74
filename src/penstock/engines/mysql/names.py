"""Names as bytes, ids computed from them, and how long the tables' prefix may be."""

from functools import lru_cache
from hashlib import sha256

from penstock.errors import InvalidName
from penstock.names import check_schema

# MySQL's names have at most 64 characters, and ours need the rest: ``_channel_numbers_v1``.
PREFIX_CHARACTERS = 40


def check_prefix(value: object) -> str:
    """What our tables' names begin with."""
    prefix = check_schema(value)
    if len(prefix) > PREFIX_CHARACTERS or any(ord(letter) > 0xFFFF for letter in prefix):
        raise InvalidName(
            f"the schema name {prefix!r} becomes the prefix of tables: use at most "
            f"{PREFIX_CHARACTERS} characters, all below U+10000"
        )
    return prefix


@lru_cache(maxsize=100_000)
def pair_id(queue: bytes, name: bytes) -> bytes:
    """The id of a channel, or of a key: 128 bits of SHA-256 over both names, so that no tenant can
    pick a name that lands in another's channel."""
    return sha256(b"%d:%b%b" % (len(queue), queue, name)).digest()[:16]


def text(value: bytes | str | None) -> str | None:
    """A name or a text that was read; some drivers decode by themselves."""
    return value.decode() if isinstance(value, bytes) else value


def data(value: str | None) -> bytes | None:
    """As it is written: bytes, so that no connection's character set changes it."""
    return None if value is None else value.encode()
