"""The name of a key in the database: the scope in which it holds, then the key itself.

Which messages share a key is decided here (on PostgreSQL also in key_names_v1, the same); all else
compares these names. Whoever shows a key leaves the first characters out: see ``KEY``."""

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256

from laneway.model import Draft, KeyScope

SCOPE = 16
"""Characters of a name before the key. All scopes have as many, so that no name of one can be read
as a name of another: 96 bits of SHA-256."""
KEY = slice(SCOPE, None)


@lru_cache(maxsize=100_000)
def _scope(scope: KeyScope | None, channel: str, kind: str) -> str:
    if scope == "queue":
        text = "queue"
    elif scope == "channel":
        text = f"channel {channel}"
    else:
        text = f"{len(channel)}:{channel}{kind}"
    return b64encode(sha256(text.encode()).digest()[: SCOPE * 6 // 8]).decode()


def key_name(key: str, scope: KeyScope | None, channel: str, kind: str) -> str:
    return _scope(scope, channel, kind) + key


def draft_key(draft: Draft) -> str | None:
    """The name of a draft's key, in its queue."""
    if draft.key is None:
        return None
    return key_name(draft.key, draft.key_scope, draft.channel, draft.kind)


def shown_key(name: str | None) -> str | None:
    return None if name is None else name[KEY]
