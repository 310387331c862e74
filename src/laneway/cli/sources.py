"""Commands that look at several databases: one picture, and one that is away does not spoil it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from laneway.errors import LanewayError

from .connect import Config, check_file, open_config, read_config, settled
from .exits import Code, in_shell
from .output import say

if TYPE_CHECKING:
    from laneway import Queue

T = TypeVar("T")

ANSWER_SECONDS = 10.0
_NAMED = re.compile(r"([^=:/?@\s]+)=(\S*?:.*)", re.DOTALL)  # a URL has a colon, libpq's words not


class Source(NamedTuple):
    """A database to look at; ``name`` is None if it is the only one."""

    name: str | None
    config: Config

    def of(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """With the database's name, if there are several."""
        return dict(document) if self.name is None else {"database": self.name, **document}


def sources(urls: list[str] | None, schema: str | None) -> list[Source]:
    """What the options say (each a URL, NAME=URL, or a name in the file), or DATABASE_URL, or the
    file."""
    config = read_config()
    given = list(urls or filter(None, [os.environ.get("DATABASE_URL")]))
    if not given and not config.url:
        given = list(config.databases)
    if len(given) <= 1 and not any(_NAMED.fullmatch(one) for one in given):
        return [Source(None, settled(given[0] if given else None, schema))]
    named = dict(_named(one, config) for one in given)
    if len(named) < len(given):
        raise typer.BadParameter("two databases have one name: write --url NAME=URL for each")
    return [Source(name, settled(url, schema)) for name, url in named.items()]


def _named(given: str, config: Config) -> tuple[str, str]:
    if given in config.databases:
        return given, config.databases[given]
    if found := _NAMED.fullmatch(given):
        return found[1], found[2]
    from laneway.client.shards import database_name

    return database_name(given), given


def look_at_all(found: list[Source], look: Callable[["Queue"], T]) -> list[tuple[Source, T]]:
    """Asks all at the same time. One that is away is named on stderr, and the command fails in the
    end (``ended``); with only one database its error is raised."""
    if len(found) == 1 and found[0].name is None:
        check_file(found[0].config)
        with open_config(found[0].config) as client:
            return [(found[0], look(client))]
    with ThreadPoolExecutor(len(found)) as threads:
        asked = [(one, threads.submit(_look, one, look)) for one in found]
    answers = []
    for source, future in asked:
        try:
            answers.append((source, future.result()))
        except (LanewayError, typer.BadParameter) as error:
            reason = error.message if isinstance(error, typer.BadParameter) else in_shell(error)
            say(f"laneway: {source.name} is away: {reason}")
    return answers


def _look(source: Source, look: Callable[["Queue"], T]) -> T:
    check_file(source.config)
    with open_config(source.config, call_timeout=ANSWER_SECONDS) as client:
        return look(client)


@contextmanager
def open_watched(found: list[Source], **options: Any) -> "Iterator[list[tuple[Source, Queue]]]":
    """Clients for looking at them again and again."""
    with ExitStack() as stack:
        opened = []
        for source in found:
            check_file(source.config)
            if source.name is not None:
                options["call_timeout"] = ANSWER_SECONDS
            client = open_config(source.config, **options)
            opened.append((source, stack.enter_context(client)))
        yield opened


@contextmanager
def open_named(
    found: list[Source], looking: float | None = None
) -> "Iterator[Queue | dict[str, Queue]]":
    """Clients by the name of their database, or one if there is one; ``looking``: seconds for which
    a look may take, by a client that cannot write."""
    from laneway.client.shared.options import looking_url

    if looking is not None:
        addresses = [(one.name, one.config) for one in found]
        found = [
            Source(name, replace(at, url=looking_url(at.url or "", at.pooler, looking)))
            for name, at in addresses
        ]
    with open_watched(found, **({} if looking is None else {"pool_size": 1})) as opened:
        named = {one.name: client for one, client in opened if one.name is not None}
        yield named or opened[0][1]


def ended(found: list[Source], answers: Sized) -> None:
    """The command has failed if one did not answer."""
    if len(answers) < len(found):
        raise typer.Exit(Code.FAILED)
