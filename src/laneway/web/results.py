"""What an action did, for the page that the browser is sent to next.

It travels in the address, signed: no session, no cookie, and any process can read it.
"""

import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256

_SECONDS = 60
_MOST = 2000  # characters in an address


@dataclass(frozen=True, slots=True)
class ActionResult:
    """``undo`` is the verb that takes it back, with its ``fields``; "" if there is none."""

    text: str
    good: bool = True
    undo: str = ""
    label: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


class SignedResults:
    """Writes and reads them with a key that only this dashboard's processes have."""

    def __init__(self, secret: str) -> None:
        self._key = sha256(secret.encode()).digest()

    def write(self, result: ActionResult, name: str) -> str:
        """For a principal of this name."""
        plain = json.dumps([time.time(), name, asdict(result)]).encode()
        if len(plain) > _MOST:
            short = ActionResult(result.text[:300], result.good)
            plain = json.dumps([time.time(), name[:200], asdict(short)]).encode()
        return f"{_text(plain)}.{_text(self._sign(plain))}"

    def read(self, text: str, name: str) -> ActionResult | None:
        """None if it is forged, old or another's."""
        body, _, mark = text.partition(".")
        try:
            plain = _bytes(body)
            if not hmac.compare_digest(self._sign(plain), _bytes(mark)):
                return None
            at, owner, values = json.loads(plain)
        except ValueError:
            return None
        fresh = 0 <= time.time() - at < _SECONDS
        return ActionResult(**values) if fresh and owner == name[:200] else None

    def _sign(self, plain: bytes) -> bytes:
        return hmac.digest(self._key, plain, "sha256")


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
