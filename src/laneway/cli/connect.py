"""Where the queue is (an option, then the environment, then a TOML file), and the client for it.

The file is the nearest ``laneway.toml``, or ``pyproject.toml`` with a ``[tool.laneway]`` table,
from the current folder upwards. Whoever has the database may do everything; the audit shows the
name of the user of this machine.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from laneway.errors import InvalidOption
from laneway.spelling import did_you_mean

if TYPE_CHECKING:
    from laneway import Queue
    from laneway.operator import Operator


_MOST_CONFIG = 1024 * 1024
_TEXTS = dict.fromkeys(("url", "schema", "queue"), str)
_KNOWN: Mapping[str, type] = {**_TEXTS, "pooler": bool, "databases": dict}
_WORDS = {str: "text in quotes", bool: "true or false", dict: "a table of names and URLs"}


@dataclass(frozen=True, slots=True)
class Config:
    url: str | None = field(default=None, repr=False)  # it may contain a password
    schema: str = "laneway"
    queue: str = "default"
    pooler: bool = False
    databases: Mapping[str, str] = field(default_factory=dict, repr=False)
    """URLs by name, for those that look at several."""


def read_config(start: Path | None = None) -> Config:
    """Reads the nearest file; returns the defaults if there is none."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        for name, path in (("laneway.toml", ()), ("pyproject.toml", ("tool", "laneway"))):
            table = _table(place / name, path)
            if table is not None:
                return _checked(table, place / name)
    return Config()


def _table(file: Path, path: tuple[str, ...]) -> Mapping[str, Any] | None:
    import tomllib

    try:
        # A FIFO would be waited for, and a device has no end.
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise InvalidOption(f"{file} is not a regular file: rename or remove it")
        with file.open("rb") as opened:
            text = opened.read(_MOST_CONFIG + 1)
        if len(text) > _MOST_CONFIG:
            raise InvalidOption(f"{file} has more than {_MOST_CONFIG:,} bytes: rename or remove it")
        content: Any = tomllib.loads(text.decode())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise InvalidOption(
            f"{file} cannot be read: {error.strerror}; rename or remove it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidOption(f"{file} is not valid TOML: {error}") from None
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else None


def _checked(table: Mapping[str, Any], file: Path) -> Config:
    # Values are not shown: the URL may contain a password.
    for key, value in table.items():
        if key not in _KNOWN:
            raise InvalidOption(f"{file}: unknown key {key!r}: {did_you_mean(key, _KNOWN)}")
        if type(value) is not _KNOWN[key]:
            raise InvalidOption(f"{file}: {key} must be {_WORDS[_KNOWN[key]]}")
    for name, url in table.get("databases", {}).items():
        if not isinstance(url, str) or not url:
            raise InvalidOption(f"{file}: the database {name!r} needs a URL")
    return Config(**table)


_CONNECT_SECONDS = "10"


def settled(url: str | None, schema: str | None, queue: str | None = None) -> Config:
    """The settings of this command; refuses if no database was given."""
    config = read_config()
    config = replace(
        config,
        url=config.databases.get(url or "", url) or config.url,
        schema=config.schema if schema is None else schema,
        queue=config.queue if queue is None else queue,
    )
    if not config.url and config.databases:
        names = ", ".join(config.databases)
        raise typer.BadParameter(f"which database? Pass --url with one of {names}")
    if not config.url:
        raise typer.BadParameter(
            "no database given: set DATABASE_URL, pass --url, or put url into laneway.toml"
        )
    if not _is_text(config.url):
        raise typer.BadParameter("the database URL is not UTF-8: type it again")
    from laneway.drivers.database_url import database_url  # help loads no driver

    return replace(config, url=database_url(config.url))


def _is_text(argument: str) -> bool:
    """Bytes that are not UTF-8 arrive from the shell as lone surrogates."""
    return argument.isascii() or argument.encode(errors="replace").decode() == argument


def open_queue(
    url: str | None, schema: str | None, queue: str | None = None, **options: Any
) -> "Queue":
    config = settled(url, schema, queue)
    check_file(config)
    return open_config(config, **options)


def open_config(config: Config, **options: Any) -> "Queue":
    from laneway import Queue

    # A person is waiting: an address that does not answer must not hang for minutes.
    os.environ.setdefault("PGCONNECT_TIMEOUT", _CONNECT_SECONDS)
    assert config.url is not None
    wanted: dict[str, Any] = {"pool_size": 2, "upkeep_every": None, "pooler": config.pooler}
    return Queue(config.url, schema=config.schema, name=config.queue, **(wanted | options))


def check_file(config: Config) -> None:
    """SQLite creates a missing file: only install and bench may do that."""
    if config.url and config.url.startswith("sqlite"):
        from laneway.drivers.sqlite.url import read_url

        place = read_url(config.url)
        if not place.in_memory and not Path(place.path).exists():
            raise typer.BadParameter(f"{place.path} does not exist: create it with laneway install")


def acting(client: "Queue") -> "Operator":
    from laneway.operator import Operator, admin

    return Operator(client, admin(user_name()), source="cli")


def user_name() -> str:
    """Who is at it, for the audit."""
    try:
        return getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"
