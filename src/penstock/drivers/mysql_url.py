"""What a mysql:// URL says, in the words of PyMySQL and asyncmy."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.errors import InvalidOption, shown

from .faults import masked, unreadable

_WORDS = {"unix_socket": str, "connect_timeout": float, "charset": str}
_TLS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_mode")
_MODES = ("REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


def connect_options(url: str) -> dict[str, Any]:
    """Host, port, user and so on, without the database."""
    if "#" in url:  # what comes after it would be left out without a word
        raise InvalidOption(f"{masked(url)} has a # in it: write %23 for it")
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError:
        raise unreadable(url) from None
    options: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": port,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "charset": "utf8mb4",
        "autocommit": False,
    }
    tls = {}
    for name, value in parse_qsl(parts.query):
        if name in _TLS:
            tls[name.removeprefix("ssl_")] = value
        elif name in _WORDS:
            options[name] = _read(name, value)
        else:
            known = ", ".join([*_WORDS, *_TLS])
            raise InvalidOption(f"the URL's option {shown(name)} is none of {known}")
    if tls:
        options["ssl"] = _context(tls)
    return options


def _read(name: str, value: str) -> Any:
    try:
        return _WORDS[name](value)
    except ValueError:
        raise InvalidOption(f"the URL's option {name} is {shown(value)}: give a number") from None


def database_of(url: str) -> str:
    name = unquote(urlsplit(url).path.removeprefix("/"))
    if not name:
        raise InvalidOption("the URL names no database: mysql://user@host/database")
    return name


def _context(tls: dict[str, str]) -> Any:
    import ssl

    mode = tls.get("mode", "VERIFY_IDENTITY").upper()
    if mode not in _MODES:
        raise InvalidOption(f"ssl_mode is {shown(mode)}: use one of {', '.join(_MODES)}")
    try:
        context = ssl.create_default_context(cafile=tls.get("ca"))
        if "cert" in tls:
            context.load_cert_chain(tls["cert"], tls.get("key"))
    except OSError as error:
        raise InvalidOption(
            f"the URL's ssl_ca, ssl_cert or ssl_key is unusable: {error}"
        ) from error
    context.check_hostname = mode == "VERIFY_IDENTITY"
    if mode == "REQUIRED":
        context.verify_mode = ssl.CERT_NONE
    return context
