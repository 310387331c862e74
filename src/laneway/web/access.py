"""Who is asking: a hook of the application, a token, or somebody on this machine. Requests from
other sites are refused, and browsers are told to be strict.

A form that another site submits is recognised by the headers that browsers send and scripts cannot
change. Clients that send neither are no browsers, and carry no credentials by themselves.
"""

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from laneway.errors import InvalidOption
from laneway.operator import ADMIN, Principal, Right

from .request import WebRequest

Hook = Callable[[Any], Principal | None]
"""Called with the framework's own request; None refuses it."""

LOOKING = frozenset({Right.VIEW, Right.VIEW_PAYLOADS, Right.VIEW_AUDIT})
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
# A proxy on this machine makes everybody look local; these headers betray it.
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


class Refused(Exception):
    """Nobody who may look. ``ask`` says whether a browser should ask for name and password."""

    def __init__(self, text: str, ask: bool = False) -> None:
        super().__init__(text)
        self.ask = ask


@dataclass(frozen=True, slots=True)
class Access:
    """One of: ``hook`` decides; ``token`` is asked for, as Bearer or as the password of Basic;
    without both only this machine is let in, unless ``insecure``."""

    hook: Hook | None = None
    token: str | None = None
    insecure: bool = False
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 12:
            raise InvalidOption("the token is too short: use at least 12 characters")

    def principal(self, request: WebRequest) -> Principal:
        """Raises Refused."""
        found = self._principal(request)
        return replace(found, rights=found.rights & LOOKING) if self.read_only else found

    def _principal(self, request: WebRequest) -> Principal:
        if self.hook is not None:
            found = self.hook(request.native)
            if found is None:
                raise Refused("You may not see this page.")
            return found
        if self.token is not None:
            return Principal(self._named(request, self.token), ADMIN)
        if self.insecure:
            return Principal("anonymous", ADMIN)
        if not _is_local(request):
            raise Refused(
                "Without a credential this dashboard answers only to the machine it runs on. "
                "Start it with --token, or mount it with principal=…"
            )
        return Principal("local", ADMIN)

    @staticmethod
    def _named(request: WebRequest, token: str) -> str:
        """The name that came with the right token; "token" if there came none."""
        scheme, _, given = request.header("authorization").partition(" ")
        name = "token"
        if scheme.lower() == "basic":
            try:
                name, _, given = b64decode(given, validate=True).decode().partition(":")
            except (Base64Error, ValueError):
                raise Refused("That is not a name and a password.", ask=True) from None
        elif scheme.lower() != "bearer":
            raise Refused("Give the token as the password, with any name.", ask=True)
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise Refused("That is not the token.", ask=True)
        return name[:200] or "token"


def _is_local(request: WebRequest) -> bool:
    """From this machine and addressed as it: a name that an attacker's DNS points here is not."""
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    try:
        near = ip_address(request.client or "").is_loopback
    except ValueError:
        near = False
    host = request.header("host").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return near and name in _LOCAL_NAMES


CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def is_foreign(request: WebRequest) -> bool:
    """Whether a request that changes something comes from another site's page."""
    site = request.header("sec-fetch-site")
    if site:
        return site != "same-origin"
    origin = request.header("origin")
    return bool(origin) and urlsplit(origin).netloc.lower() != request.header("host").lower()
