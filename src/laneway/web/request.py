"""A request and a response without a framework: every adapter builds one and sends the other; and
which status of HTTP an error has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from laneway.errors import (
    ConnectionUnavailable,
    CountChanged,
    DatabaseFailed,
    InvalidInput,
    LanewayError,
    NotAllowed,
    PublishRefused,
    SchemaError,
)
from laneway.operator import Principal


@dataclass(frozen=True, slots=True)
class WebRequest:
    """``path`` is below the place where the dashboard is mounted and begins with a slash;
    ``headers`` have lower-case names. ``native`` is the framework's own request, for the hook.
    ``place`` is where this database's pages are below the first page of a console of several:
    "db/<name>/". ``principal`` is who asks, once that is known; the body is read only then."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    client: str | None = None
    native: Any = None
    place: str = ""
    principal: Principal | None = None

    @property
    def params(self) -> dict[str, str]:
        """The query's values, the last of each name; empty ones are left out, as forms send them
        for fields that nobody filled in."""
        return {name: value for name, value in self._pairs(self.query) if value != ""}

    @property
    def form(self) -> dict[str, str]:
        """The fields of a posted form, with empty ones."""
        return dict(self._pairs(self.body.decode("utf-8", "replace")))

    @property
    def base(self) -> str:
        """From this page to the mount: relative, so that no proxy has to tell where that is."""
        return "../" * (self.path.count("/") - 1) or "./"

    @property
    def root(self) -> str:
        """From the mount of this database's pages to the first page of all."""
        return "../" * self.place.count("/")

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def link(self, path: str, **params: object) -> str:
        """A relative address; what is None is left out."""
        chosen = {name: str(value) for name, value in params.items() if value is not None}
        return self.base + path + (f"?{urlencode(chosen)}" if chosen else "")

    @staticmethod
    def _pairs(text: str) -> list[tuple[str, str]]:
        try:
            return parse_qsl(text, keep_blank_values=True, max_num_fields=200)
        except ValueError:
            return []


@dataclass(slots=True)
class WebResponse:
    """``live`` is a source of hints: the adapter sends their stream instead of the body."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    live: Any = None


def redirect(location: str) -> WebResponse:
    return WebResponse(303, headers={"location": location})


_STATUS: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((NotAllowed,), 403),
    ((InvalidInput,), 400),
    ((LookupError,), 404),
    ((PublishRefused, CountChanged), 409),
    ((ConnectionUnavailable, DatabaseFailed, SchemaError), 503),
)


class NotFound(LanewayError, LookupError):
    """There is no such page, message, channel or verb."""


def status_of(error: Exception) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
