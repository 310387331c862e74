"""The address of a SQLAlchemy engine's database, so that it is written down once."""

from typing import Protocol

from laneway.drivers.database_url import database_url


class _Url(Protocol):
    def render_as_string(self, hide_password: bool = True) -> str: ...


class HasUrl(Protocol):
    """An Engine or an AsyncEngine."""

    @property
    def url(self) -> _Url: ...


def url_of(engine: HasUrl) -> str:
    """For ``Queue`` or ``AsyncQueue``; it holds the password. What the engine was told by
    ``connect_args`` is not in it, and options that are for the engine's driver alone are left out.

    >>> queue = Queue(url_of(engine))
    """
    # SQLAlchemy leaves spaces as they are.
    url = engine.url.render_as_string(hide_password=False).replace(" ", "%20")
    return database_url(url, lenient=True)
