"""The address of a SQLAlchemy engine's database, so that it is written down once."""

from typing import Protocol


class _Url(Protocol):
    @property
    def drivername(self) -> str: ...

    def render_as_string(self, hide_password: bool = True) -> str: ...

    def set(self, *, drivername: str) -> "_Url": ...


class HasUrl(Protocol):
    """An Engine or an AsyncEngine."""

    @property
    def url(self) -> _Url: ...


# Penstock has its own driver for each database, unless the name asks for one that it knows.
_KEPT = ("postgresql+asyncpg", "postgresql+psycopg")


def url_of(engine: HasUrl) -> str:
    """For ``Queue`` or ``AsyncQueue``; it holds the password.

    >>> queue = Queue(url_of(engine))
    """
    url = engine.url
    name = url.drivername if url.drivername in _KEPT else url.drivername.partition("+")[0]
    return url.set(drivername=name).render_as_string(hide_password=False)
