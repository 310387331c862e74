"""The parts of a mysql:// URL as connection options of PyMySQL and asyncmy."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from laneway.drivers.errors import masked, unreadable
from laneway.errors import InvalidOption, shown

_OPTIONS = {"unix_socket": str, "connect_timeout": float}
_TLS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_mode")
_LONGEST = 86_400
_MODES = ("REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


def connect_options(url: str) -> dict[str, Any]:
    """Host, port, user and so on, without the database."""
    if "#" in url:  # what follows would be dropped silently, as a fragment
        raise InvalidOption(f"{masked(url)} contains a #: write it as %23")
    try:
        parts = urlsplit(url)
        port = 3306 if parts.port is None else parts.port
    except ValueError:
        raise unreadable(url) from None
    if not port:
        raise unreadable(url)
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
        elif name == "statement_timeout":
            options["init_command"] = _timeout(value)
        elif name in _OPTIONS:
            options[name] = _read(name, value)
        else:
            known = ", ".join([*_OPTIONS, "statement_timeout", *_TLS])
            raise InvalidOption(f"unknown option {shown(name)} in the URL: use one of {known}")
    if tls:
        options["ssl"] = _context(tls)
    return options


def _read(name: str, value: str) -> Any:
    try:
        read = _OPTIONS[name](value)
        if name == "connect_timeout" and not 0 < read < _LONGEST:
            raise InvalidOption(
                f"the URL's option {name} is {shown(value)}: it must be a number of seconds"
            )
        return read
    except ValueError:
        raise InvalidOption(
            f"the URL's option {name} is {shown(value)}: it must be a number"
        ) from None


def _timeout(value: str) -> str:
    """For connections that only look: the server ends what takes longer, each in its own words.
    MySQL ends only what reads."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _LONGEST:
        raise InvalidOption(
            f"the URL's option statement_timeout is {shown(value)}: it must be a number of seconds"
        )
    return (
        f"set @laneway = 1 /*M!100101 , session max_statement_time = {seconds:f} */"
        f"/*!50708 , session max_execution_time = {int(seconds * 1000)} */"
    )


def database_of(url: str) -> str:
    name = unquote(urlsplit(url).path.removeprefix("/"))
    if not name:
        raise InvalidOption("the URL has no database name: mysql://user@host/database")
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
        raise InvalidOption(f"cannot use the URL's ssl_ca, ssl_cert or ssl_key: {error}") from error
    context.check_hostname = mode == "VERIFY_IDENTITY"
    if mode == "REQUIRED":
        context.verify_mode = ssl.CERT_NONE
    return context
