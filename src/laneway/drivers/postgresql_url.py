"""What can be said about a postgresql:// URL before anybody connects."""

import re
from urllib.parse import parse_qsl, urlsplit

from laneway.errors import InvalidOption, shown

from .errors import unreadable

_PORT = re.compile(r":([^:\[\]]*)$")


def check_postgresql_url(url: str) -> None:
    """Ports that are none, and a timeout that is no number: drivers would only find out when they
    connect, each in its own words, and asyncpg would send the timeout to the server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise unreadable(url) from None
    options = dict(parse_qsl(parts.query))
    hosts = parts.netloc.rpartition("@")[2].split(",")
    ports = [found[1] for host in hosts if (found := _PORT.search(host))]
    for port in [*ports, *options.get("port", "").split(",")]:
        if port and not (port.isdecimal() and 0 < int(port) < 65_536):
            raise unreadable(url)
    seconds = options.get("connect_timeout")
    if seconds is not None and not re.fullmatch(r"-?\d{1,9}", seconds.strip()):
        raise InvalidOption(
            f"the URL's option connect_timeout is {shown(seconds)}: it must be a whole number"
        )
