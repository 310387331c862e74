"""Opens the client that a command works with."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .config import Config, read_config

if TYPE_CHECKING:
    from laneway import Queue

_CONNECT_SECONDS = "10"


def settled(url: str | None, schema: str | None, queue: str | None = None) -> Config:
    """The settings of this command; refuses if no database was given."""
    config = read_config()
    config = replace(
        config,
        url=url or config.url,
        schema=config.schema if schema is None else schema,
        queue=config.queue if queue is None else queue,
    )
    if not config.url:
        raise typer.BadParameter(
            "no database given: set DATABASE_URL, pass --url, or put url into laneway.toml"
        )
    if not _is_text(config.url):
        raise typer.BadParameter("the database URL is not UTF-8: type it again")
    return config


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
