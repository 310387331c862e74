"""The URL of a database of the site, from its settings as they are now: tests swap the name."""

from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured

_SCHEMES = {"postgresql": "postgresql", "mysql": "mysql"}
_PORTS = {"postgresql": 5432, "mysql": 3306}


def url_of(connection: Any) -> str:
    """For a client of our own; it holds the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return _file(str(settings["NAME"]))
    if connection.vendor not in _SCHEMES:
        raise ImproperlyConfigured(
            f"Penstock has no engine for {connection.vendor}: set PENSTOCK = "
            '{"database": ...} to a PostgreSQL, MySQL, MariaDB or SQLite database of this site'
        )
    return _server(_SCHEMES[connection.vendor], settings)


def _file(name: str) -> str:
    if ":memory:" in name or "mode=memory" in name:
        raise ImproperlyConfigured(
            "Penstock cannot reach a database in memory: give the SQLite database (and its TEST) "
            "a file name"
        )
    return f"sqlite:///{quote(name)}"


def _server(scheme: str, settings: dict[str, Any]) -> str:
    host, port = settings.get("HOST") or "", settings.get("PORT") or _PORTS[scheme]
    options = {
        name: value
        for name, value in settings.get("OPTIONS", {}).items()
        if scheme == "postgresql" and isinstance(value, str | int)
    }
    if host.startswith("/"):  # a folder with the server's socket
        options, host = {"host": host, "port": port, **options}, ""
    place = f"{host}:{port}" if host else ""
    password = f":{quote(settings['PASSWORD'], safe='')}" if settings.get("PASSWORD") else ""
    user = quote(settings.get("USER") or "", safe="") + password
    login = f"{user}@" if user else ""
    query = f"?{urlencode(options)}" if options else ""
    return f"{scheme}://{login}{place}/{quote(settings['NAME'], safe='')}{query}"
