"""A password that must turn up nowhere, and where to look for it."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from laneway import AsyncQueue, LanewayError, Queue

CANARY = "c4nary-S3cret"
# As people write them: escaped, and with signs that a URL reads otherwise.
PASSWORDS = {
    "plain": CANARY,
    "escaped": quote(f"{CANARY}/@:#?% &=", safe=""),
    "with an @": f"{CANARY}@{CANARY}",
    "with a slash": f"{CANARY}/{CANARY}",
    "with a hash": f"{CANARY}#{CANARY}",
    "with a question mark": f"{CANARY}?{CANARY}",
    "with a colon": f"{CANARY}:{CANARY}",
}
# By the client's name, the scheme and the world.
DRIVERS: dict[str, tuple[str, Any]] = {
    "sync psycopg": ("postgresql", Queue),
    "async psycopg": ("postgresql", AsyncQueue),
    "asyncpg": ("postgresql+asyncpg", AsyncQueue),
    "pymysql": ("mysql", Queue),
    "asyncmy": ("mysql", AsyncQueue),
}


def holds_canary(text: str) -> bool:
    """Also if a part was cut off, or the case was changed."""
    return "c4nary" in text.lower() or "s3cret" in text.lower()


def failing(driver: str, url: str, call: Callable[[Any], Any]) -> LanewayError:
    """What a call on a client of this URL raises, making the client included."""
    _, world = DRIVERS[driver]

    async def run() -> None:
        async with world(url, pool_size=2, upkeep_every=None) as queue:
            assert not holds_canary(repr(queue))
            await call(queue)

    try:
        if world is AsyncQueue:
            asyncio.run(run())
        else:
            with world(url, pool_size=2, upkeep_every=None) as queue:
                assert not holds_canary(repr(queue))
                call(queue)
    except LanewayError as error:
        return error
    raise AssertionError("nothing was raised")


def everything_said(error: BaseException) -> str:
    """The error with all that it came from, as a log would have it."""
    said = [*traceback.format_exception(error), str(error), repr(error), repr(error.args)]
    while (before := _before(error)) is not None:
        error = before
        said += [str(error), repr(error), repr(error.args)]
    return "\n".join(said)


def _before(error: BaseException) -> BaseException | None:
    """What a traceback shows above it."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def logged(records: list[logging.LogRecord]) -> str:
    form = logging.Formatter("%(name)s %(message)s")
    return "\n".join(form.format(record) for record in records)


def command_lines(process: int) -> dict[int, str]:
    """Of a process and all that it started, as everybody on the machine may read them."""
    first = psutil.Process(process)
    found = {}
    for each in (first, *first.children(recursive=True)):
        try:
            text = Path(f"/proc/{each.pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        found[each.pid] = text.replace(b"\0", b" ").decode(errors="replace")
    return found
