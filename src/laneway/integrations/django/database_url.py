"""The URL of a database of the site, from its settings as they are now: tests swap the name.

What Django's own connection would be told is in it, as far as it says where the server is, who
comes and how it is protected. The rest of OPTIONS is for Django and its driver.
"""

from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from django.core.exceptions import ImproperlyConfigured

from laneway.drivers.database_url import LIBPQ_WORDS

_TLS_FILES = ("ca", "cert", "key")
_NO_TLS = ("DISABLED", "PREFERRED")


def url_of(connection: Any) -> str:
    """For a client of our own; it holds the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return _file(str(settings["NAME"]))
    if connection.vendor == "postgresql":
        return _postgresql(settings)
    if connection.vendor == "mysql":
        return _mysql(settings)
    raise ImproperlyConfigured(
        f"Laneway has no engine for {connection.vendor}: set LANEWAY = "
        '{"database": ...} to a PostgreSQL, MySQL, MariaDB or SQLite database of this site'
    )


def _file(name: str) -> str:
    if ":memory:" in name or "mode=memory" in name:
        raise ImproperlyConfigured(
            "Laneway cannot reach a database in memory: give the SQLite database (and its TEST) "
            "a file name"
        )
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    return f"sqlite:///{quote(name)}"


def _postgresql(settings: dict[str, Any]) -> str:
    given = settings.get("OPTIONS") or {}
    options = {word: str(value) for word, value in given.items() if word in LIBPQ_WORDS}
    if role := given.get("assume_role"):
        # What migrate installs must belong to whom the site's statements are run as.
        options["options"] = f"{options.get('options', '')} -c role={_escaped(role)}".strip()
    host, port = settings.get("HOST") or "", settings.get("PORT") or ""
    if not host or "/" in host or "," in host:  # the server's socket, or one of several servers
        place = {"host": host, "port": str(port)}
        options, host = {name: value for name, value in place.items() if value} | options, ""
    return _server("postgresql", settings, host, options)


def _mysql(settings: dict[str, Any]) -> str:
    given = settings.get("OPTIONS") or {}
    if "read_default_file" in given:
        raise ImproperlyConfigured(
            "Laneway does not read OPTIONS['read_default_file']: write NAME, USER, PASSWORD and "
            "HOST into DATABASES"
        )
    host = settings.get("HOST") or ""
    socket = host if host.startswith("/") else given.get("unix_socket")
    words = {"unix_socket": socket, "connect_timeout": given.get("connect_timeout")}
    options = {name: str(value) for name, value in words.items() if value is not None}
    return _server("mysql", settings, "" if socket else host, options | _mysql_tls(given))


def _mysql_tls(given: dict[str, Any]) -> dict[str, str]:
    """As mysqlclient reads it: files alone mean that the certificate is checked, not the name."""
    tls, mode = given.get("ssl"), str(given.get("ssl_mode") or "").upper()
    if mode in _NO_TLS or not (tls or mode):
        return {}
    files = tls if isinstance(tls, dict) else {}
    found = {f"ssl_{name}": str(files[name]) for name in _TLS_FILES if files.get(name)}
    return {**found, "ssl_mode": mode or ("VERIFY_CA" if "ssl_ca" in found else "REQUIRED")}


def _server(scheme: str, settings: dict[str, Any], host: str, options: dict[str, str]) -> str:
    host = f"[{host}]" if ":" in host else host
    port = f":{settings['PORT']}" if host and settings.get("PORT") else ""
    password = f":{quote(settings['PASSWORD'], safe='')}" if settings.get("PASSWORD") else ""
    user = quote(settings.get("USER") or "", safe="") + password
    login = f"{user}@" if user else ""
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"{scheme}://{login}{host}{port}/{quote(settings.get('NAME') or '', safe='')}{query}"


def _escaped(role: str) -> str:
    return role.replace("\\", "\\\\").replace(" ", "\\ ")
