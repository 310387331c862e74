"""The client that a command works with."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .config import Config, read_config

if TYPE_CHECKING:
    from penstock import Queue

_CONNECT_SECONDS = "10"


def settled(url: str | None, schema: str | None, queue: str | None = None) -> Config:
    """What holds for this command; refuses if nobody has said where the database is."""
    config = read_config()
    config = replace(
        config,
        url=url or config.url,
        schema=config.schema if schema is None else schema,
        queue=config.queue if queue is None else queue,
    )
    if not config.url:
        raise typer.BadParameter(
            "which database? Give --url, set DATABASE_URL, or put url into penstock.toml",
            param_hint="--url",
        )
    if not _is_text(config.url):
        raise typer.BadParameter("the URL is not UTF-8: type it again", param_hint="--url")
    return config


def _is_text(argument: str) -> bool:
    """Bytes that are no UTF-8 come from a shell as halves of surrogate pairs."""
    return argument.isascii() or argument.encode(errors="replace").decode() == argument


def open_queue(
    url: str | None, schema: str | None, queue: str | None = None, **options: Any
) -> "Queue":
    config = settled(url, schema, queue)
    check_file(config)
    return open_config(config, **options)


def open_config(config: Config, **options: Any) -> "Queue":
    from penstock import Queue

    # A person waits: an address nobody answers at must not hang for minutes.
    os.environ.setdefault("PGCONNECT_TIMEOUT", _CONNECT_SECONDS)
    assert config.url is not None
    wanted: dict[str, Any] = {"pool_size": 2, "upkeep_every": None, "pooler": config.pooler}
    return Queue(config.url, schema=config.schema, queue=config.queue, **(wanted | options))


def check_file(config: Config) -> None:
    """SQLite makes the file that it does not find: only install and bench are to do that."""
    if config.url and config.url.startswith("sqlite"):
        from penstock.drivers.sqlite_place import read_url

        place = read_url(config.url)
        if not place.in_memory and not Path(place.path).exists():
            raise typer.BadParameter(f"there is no file {place.path}: penstock install makes it")
