"""Browsers that gave the token once: a cookie with a name and an end, signed with the token.

Any process that has the token can read it, and a new token ends all of them. The token itself is in
no address: the link that ``laneway dashboard`` prints has it behind the ``#``, which browsers keep
to themselves; a script of the page hands it over and takes it out of the address.
"""

import hmac
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from .request import WebRequest

SECONDS = 7 * 86_400


class Sessions:
    """Writes and reads the cookie."""

    def __init__(self, token: str) -> None:
        self._key = hmac.digest(token.encode(), b"laneway session", "sha256")
        # Cookies do not tell ports apart: each dashboard of a machine has a name of its own.
        self.cookie = f"laneway_{sha256(self._key).hexdigest()[:12]}"

    def begin(self, name: str, request: WebRequest) -> str:
        """The header that makes the browser remember. Without a path it is sent to where this page
        is and below, wherever a proxy has put that."""
        plain = f"{int(time.time()) + SECONDS}:{name}".encode()
        text = f"{_text(plain)}.{_text(self._sign(plain))}"
        return f"{self.cookie}={text}; Max-Age={SECONDS}; {_attributes(request)}"

    def end(self, request: WebRequest) -> str:
        return f"{self.cookie}=; Max-Age=0; {_attributes(request)}"

    def name(self, request: WebRequest) -> str | None:
        """Who signed in; None if nobody did, or not with this token, or too long ago."""
        body, _, mark = self._cookie(request).partition(".")
        try:
            plain, signature = _bytes(body), _bytes(mark)
        except ValueError:
            return None
        if not hmac.compare_digest(self._sign(plain), signature):
            return None
        end, _, name = plain.decode().partition(":")
        return name if int(end) > time.time() else None

    def _cookie(self, request: WebRequest) -> str:
        pairs = (part.strip().partition("=") for part in request.header("cookie").split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    def _sign(self, plain: bytes) -> bytes:
        return hmac.digest(self._key, plain, "sha256")


def _attributes(request: WebRequest) -> str:
    # A proxy may have ended TLS: the browser says with what it began.
    secure = request.header("origin").startswith("https:")
    return "HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
