"""Names as bytes, ids computed from them, and the tables' prefix."""

from functools import lru_cache
from hashlib import sha256

from laneway.errors import InvalidName
from laneway.names import check_schema

# MySQL allows 64 characters in a name; the longest of ours adds ``_channel_stats_v1``.
PREFIX_CHARACTERS = 40


def check_prefix(value: object) -> str:
    """The schema name, which the names of our tables begin with."""
    prefix = check_schema(value)
    if len(prefix) > PREFIX_CHARACTERS or any(ord(letter) > 0xFFFF for letter in prefix):
        raise InvalidName(
            f"the schema name {prefix!r} becomes the prefix of tables: use at most "
            f"{PREFIX_CHARACTERS} characters, all below U+10000"
        )
    return prefix


@lru_cache(maxsize=100_000)
def pair_id(queue: bytes, name: bytes) -> bytes:
    """The id of a channel or of a key: 128 bits of SHA-256 over both names, so that no tenant can
    choose a name whose id collides with another tenant's channel."""
    return sha256(b"%d:%b%b" % (len(queue), queue, name)).digest()[:16]


def text(value: bytes | str | None) -> str | None:
    """A name or text as it was read; some drivers decode bytes themselves."""
    return value.decode() if isinstance(value, bytes) else value


def data(value: str | None) -> bytes | None:
    """A name or text to write: bytes, so that no connection's character set changes it."""
    return None if value is None else value.encode()
