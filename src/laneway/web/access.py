"""Who is asking: a hook of the application, a token, or somebody on this machine. Requests from
other sites are refused, and browsers are told to be strict.

A form that another site submits is recognised by the headers that browsers send and scripts cannot
change. Clients that send neither are no browsers, and carry no credentials by themselves.
"""

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from laneway.errors import InvalidOption
from laneway.operator import ADMIN, Principal, Right

from .guesses import Guesses
from .request import WebRequest
from .sessions import Sessions

Hook = Callable[[Any], Principal | None]
"""Called with the framework's own request; None refuses it."""

LOOKING = frozenset({Right.VIEW, Right.VIEW_PAYLOADS, Right.VIEW_AUDIT})
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
# A proxy on this machine makes everybody look local; these headers betray it, if it sends them.
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


class Refused(Exception):
    """Nobody who may look. ``ask`` says whether a token would help, ``wait`` for how many seconds
    none is looked at."""

    def __init__(self, text: str, ask: bool = False, wait: int = 0) -> None:
        super().__init__(text)
        self.ask = ask
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Access:
    """The first of these that is given: ``hook`` decides; ``token`` is asked for; ``trust_local``
    lets in whoever comes from this machine, ``insecure`` everybody."""

    hook: Hook | None = None
    token: str | None = None
    trust_local: bool = False
    insecure: bool = False
    read_only: bool = False
    guesses: Guesses = field(default_factory=Guesses)

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 12:
            raise InvalidOption("the token is too short: use at least 12 characters")
        if not (self.hook or self.token or self.trust_local or self.insecure):
            raise InvalidOption(
                "say who may use the dashboard: principal= (a function that knows your users), "
                "token=, or trust_local=True (everybody on this machine, and everybody who comes "
                "through a proxy on it)"
            )

    @property
    def sessions(self) -> Sessions | None:
        """Browsers that gave the token once; None if none is asked for."""
        return None if self.hook or self.token is None else Sessions(self.token)

    def principal(self, request: WebRequest) -> Principal:
        """Raises Refused."""
        found = self._principal(request)
        return replace(found, rights=found.rights & LOOKING) if self.read_only else found

    def signed_in(self, request: WebRequest) -> bool:
        return self.sessions is not None and self.sessions.name(request) is not None

    def check_token(self, given: str, client: str | None) -> None:
        """Raises Refused if it is wrong, or if there were too many wrong ones to look at it."""
        assert self.token is not None
        if wait := self.guesses.wait(client):
            raise Refused(f"Too many wrong tokens: try again in {wait} s.", wait=wait)
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            self.guesses.add(client)
            raise Refused("That is not the token.", ask=True)

    def _principal(self, request: WebRequest) -> Principal:
        if self.hook is not None:
            found = self.hook(request.native)
            if found is None:
                raise Refused("You may not see this page.")
            return found
        if self.token is not None:
            return Principal(self._named(request), ADMIN)
        if self.trust_local and _is_local(request):
            return Principal("local", ADMIN)
        if self.insecure:
            return Principal("anonymous", ADMIN)
        raise Refused(
            "This dashboard answers only to the machine it runs on. Start it with --token, or "
            "mount it with principal=…"
        )

    def _named(self, request: WebRequest) -> str:
        """The name of the session, or the one that came with the token; "token" if there came
        none."""
        assert self.sessions is not None
        if (name := self.sessions.name(request)) is not None:
            return name
        scheme, _, given = request.header("authorization").partition(" ")
        name = ""
        if scheme.lower() == "basic":
            try:
                name, _, given = b64decode(given, validate=True).decode().partition(":")
            except (Base64Error, ValueError):
                raise Refused("That is not a name and a password.", ask=True) from None
        elif scheme.lower() != "bearer":
            raise Refused("Sign in with the token.", ask=True)
        self.check_token(given, request.client)
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
