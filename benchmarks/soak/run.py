"""One soak: load, workers, a line every interval, an account at the end."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from laneway import Queue

from .crew import Crew
from .load import Load
from .sampling import Server, Snapshot
from .terms import HISTORY_DAYS, QUEUE, Terms
from .verdict import Line, flat, losses

PATIENCE = 120.0  # seconds for what is left at the end
OLD = 500  # messages of each day that is past


class Result(NamedTuple):
    lines: list[Line]
    published: int
    losses: list[str]
    not_flat: list[str]


def run(url: str, terms: Terms, tell: Callable[[Line], None]) -> Result:
    """On an empty database; ``tell`` gets each line as it is made."""
    with Queue(url, name=QUEUE) as queue:
        queue.install()
        queue.configure(history="all", history_days=HISTORY_DAYS)
        _live_in_the_past(url)
        server = Server(url)
        snapshot = Snapshot(url)
        with Load(url, terms) as load, Crew(url, terms.workers) as crew:
            load.start()
            lines = _watch(terms, server, snapshot, load, crew, tell)
            load.stop()
            _drain(server)
            crew.dismiss()
        snapshot.hold(False)
        queue.upkeep()
        found = losses(server.account(), load.published, server.old_days())
        server.close()
    if load.trouble is not None:
        found.append(f"publishing ended with {load.trouble!r}")
    return Result(lines, load.published, found, flat(lines))


def _live_in_the_past(url: str) -> None:
    """History of days that are past the retention, so that there is something to drop."""
    for days in (4, 3, 2):
        then = datetime.now(UTC) - timedelta(days=days)
        with Queue(url, name="past", upkeep_every=None, clock=lambda then=then: then) as past:  # type: ignore[misc]
            past.upkeep()
            past.publish_many([b"x"] * OLD)
            past.complete(past.claim(OLD))


def _watch(
    terms: Terms,
    server: Server,
    snapshot: Snapshot,
    load: Load,
    crew: Crew,
    tell: Callable[[Line], None],
) -> list[Line]:
    lines: list[Line] = []
    begun = time.monotonic()
    published = done = 0
    last = 0.0
    while last < terms.seconds:
        held = snapshot.hold(terms.snapshot_held(last))
        time.sleep(max(0.0, begun + last + terms.step - time.monotonic()))
        now = time.monotonic() - begun
        length = now - last
        line = Line(
            now,
            held,
            (load.published - published) / length,
            (crew.done - done) / length,
            server.waiting(),
            crew.late(),
            *server.held(),
            crew.memory,
        )
        published, done, last = load.published, crew.done, now
        lines.append(line)
        tell(line)
    return lines


def _drain(server: Server) -> None:
    end = time.monotonic() + PATIENCE
    while server.waiting() and time.monotonic() < end:
        time.sleep(0.5)
