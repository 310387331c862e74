"""One console for several databases: the first page shows all of them, and each has its own pages
below ``db/<name>/``. One that is away is named, with the time since when; it takes nothing from the
others."""

import re
import threading
from collections.abc import Hashable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from laneway import __version__
from laneway.client.aio.queue import AsyncQueue
from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption, LanewayError
from laneway.names import check_name
from laneway.operator import Operator, Principal

from .access import Access
from .assets import asset_version
from .context import Context
from .dashboard import Dashboard, Scrapes
from .reads import CachedReader
from .rendering import render
from .request import WebRequest, WebResponse, redirect
from .sign_in import LOGIN, LOGOUT, safely

LOOK_SECONDS = 2.5
"""For which the page waits for a database."""
_BELOW = re.compile(r"/db/([^/]+)(/.*)")
_BELOW_BARE = re.compile(r"/db/([^/]+)")


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    """The numbers of one database; those of the last look if it is away."""

    name: str
    slug: str
    away_since: datetime | None = None
    problem: str | None = None
    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    dead: int = 0
    channels: int = 0
    exact: bool = True
    oldest: timedelta | None = None
    workers: int = 0
    used: int = 0
    known: bool = False
    """Whether it was ever read."""


class Dashboards:
    """Pages for several databases, by name; the options are those of :class:`Dashboard`.

    >>> app.mount("/queue", dashboard({"eu-1": queue_1, "eu-2": queue_2}, principal=who))
    """

    def __init__(self, queues: Mapping[str, Queue | AsyncQueue], **options: Any) -> None:
        if not queues:
            raise InvalidOption("dashboard() needs a Queue: there is none")
        slugs = _slugs(queues)
        self._boards = {slugs[name]: Dashboard(queue, **options) for name, queue in queues.items()}
        self._names = {slug: name for name, slug in slugs.items()}
        for slug, board in self._boards.items():
            board.tabs = [(self._names[other], other, other == slug) for other in self._boards]
        self._glances = {
            slug: _Glance(self._names[slug], slug, b) for slug, b in self._boards.items()
        }
        first = next(iter(self._boards.values()))
        # Wrong tokens are counted together.
        self.access: Access = first.access
        for board in self._boards.values():
            board.access = first.access
        self.title = first.title
        self._first = first
        self._scrapes = Scrapes(
            {self._names[slug]: board.connections.reading for slug, board in self._boards.items()}
        )

    def begin(self) -> None:
        for board in self._boards.values():
            board.begin()

    def close(self) -> None:
        for board in self._boards.values():
            board.close()

    def admit(self, head: WebRequest) -> WebRequest | WebResponse:
        """As the dashboard of one database does."""
        board, inner = self._board(head)
        admitted = board.admit(inner)
        if isinstance(admitted, WebResponse):
            return admitted
        return replace(head, principal=admitted.principal)

    def respond(self, request: WebRequest) -> WebResponse:
        """Never raises; waits for databases, so it runs in a thread."""
        board, inner = self._board(request)
        if inner is not request:
            return board.respond(inner)
        admitted = request if request.principal else self.admit(request)
        if isinstance(admitted, WebResponse):
            return admitted
        return safely(self.title, admitted, self._respond)

    def _board(self, request: WebRequest) -> tuple[Dashboard, WebRequest]:
        """Whose page it is, and the request as that one gets it; of the first page of all, the
        same request."""
        found = _BELOW.fullmatch(request.path)
        if found is None or found[1] not in self._boards:
            return self._first, request
        inner = replace(request, path=found[2], place=f"db/{found[1]}/")
        return self._boards[found[1]], inner

    def _respond(self, request: WebRequest) -> WebResponse:
        if request.path in (LOGIN, LOGOUT) or request.path.startswith("/static/"):
            return self._first.respond(request)
        principal = request.principal
        assert principal is not None
        if (found := _BELOW_BARE.fullmatch(request.path)) and found[1] in self._boards:
            return redirect(f"{found[1]}/")
        if request.path == "/metrics" and request.method != "POST":
            return self._scrapes.respond(principal)
        if request.path != "/" or request.method not in ("GET", "HEAD"):
            return WebResponse(404, b"There is no such page.", "text/plain")
        return WebResponse(200, self._page(request, principal))

    def _page(self, request: WebRequest, principal: Principal) -> bytes:
        looks = [(one, one.begin(principal)) for one in self._glances.values()]
        end = monotonic() + LOOK_SECONDS
        rows = [one.row(look, max(0.0, end - monotonic())) for one, look in looks]
        board = self._first
        reader = CachedReader(board.connections.reading, principal, board.cache)
        operator = Operator(board.connections.acting, principal, source="dashboard")
        values = {
            "c": Context(request, reader, operator, self.access.read_only),
            "title": "Databases",
            "site": self.title,
            "version": __version__,
            "assets": asset_version(),
            "pages": [],
            "stale": None,
            "result": None,
            "live": False,
            "api": False,
            "tabs": [(row.name, row.slug, False) for row in rows],
            "root": "",
            "signed_in": self.access.signed_in(request),
            "rows": rows,
            "total": _total(rows),
            "away": [row for row in rows if row.away_since is not None],
        }
        return render("databases.html", values)


class _Glance:
    """Looks at one database, one look at a time for all who see the same."""

    def __init__(self, name: str, slug: str, board: Dashboard) -> None:
        self._name = name
        self._slug = slug
        self._board = board
        self._lock = threading.Lock()
        self._flights: dict[Hashable, tuple[Future[DatabaseRow], float]] = {}
        self._last: dict[Hashable, DatabaseRow] = {}
        self._away_since: datetime | None = None

    def begin(self, principal: Principal) -> tuple[Hashable, Future[DatabaseRow], float]:
        scope = (principal.channel_prefixes, principal.rights)
        with self._lock:
            if scope in self._flights:
                return scope, *self._flights[scope]
            flight: Future[DatabaseRow] = Future()
            self._flights[scope] = flight, monotonic()
        # A daemon: a database that never answers must not keep the process from ending.
        threading.Thread(target=self._fly, args=(scope, principal, flight), daemon=True).start()
        return scope, flight, monotonic()

    def row(
        self, look: tuple[Hashable, "Future[DatabaseRow]", float], seconds: float
    ) -> DatabaseRow:
        scope, flight, begun = look
        # Who asks while an old look is still under way does not wait for it again.
        wait([flight], timeout=seconds if monotonic() - begun < LOOK_SECONDS else 0)
        problem = f"nothing within {LOOK_SECONDS:g} s"
        if flight.done():
            error = flight.exception()
            if error is None:
                with self._lock:
                    self._away_since, self._last[scope] = None, flight.result()
                return flight.result()
            problem = str(error)
        with self._lock:
            self._away_since = self._away_since or datetime.now(UTC)
            last = self._last.get(scope) or DatabaseRow(self._name, self._slug)
            return replace(last, away_since=self._away_since, problem=problem)

    def _fly(self, scope: Hashable, principal: Principal, flight: "Future[DatabaseRow]") -> None:
        try:
            found = self._read(principal)
        except (LanewayError, OSError) as error:
            flight.set_exception(error)
        except BaseException as error:
            flight.set_exception(RuntimeError(f"it could not be read: {type(error).__name__}"))
        else:
            flight.set_result(found)
        finally:
            with self._lock:
                self._flights.pop(scope, None)

    def _read(self, principal: Principal) -> DatabaseRow:
        board = self._board
        reader = CachedReader(board.connections.reading, principal, board.cache)
        if not reader.may("stats"):
            return DatabaseRow(self._name, self._slug)
        queues, now = reader.read("stats"), reader.read("clock")
        if reader.stale is not None:
            raise LanewayError(reader.stale.error or "it does not answer")
        workers = reader.read("workers") if reader.may("workers") else []
        running = [worker for worker in workers if worker.state == "running"]
        oldest = [q.oldest_due for q in queues if q.oldest_due is not None]
        return DatabaseRow(
            self._name,
            self._slug,
            waiting=sum(q.waiting for q in queues),
            scheduled=sum(q.scheduled for q in queues),
            leased=sum(q.leased for q in queues),
            dead=sum(q.dead for q in queues),
            channels=sum(q.channels for q in queues),
            exact=all(q.exact for q in queues),
            oldest=max(timedelta(0), now - min(oldest)) if oldest else None,
            workers=len(running),
            used=sum(worker.used for worker in running),
            known=True,
        )


def _total(rows: Iterable[DatabaseRow]) -> DatabaseRow:
    """Of those that answer."""
    there = [row for row in rows if row.away_since is None]
    return DatabaseRow(
        "",
        "",
        waiting=sum(row.waiting for row in there),
        scheduled=sum(row.scheduled for row in there),
        leased=sum(row.leased for row in there),
        dead=sum(row.dead for row in there),
        channels=sum(row.channels for row in there),
        exact=all(row.exact for row in there),
        oldest=max((row.oldest for row in there if row.oldest is not None), default=None),
        used=sum(row.used for row in there),
        known=True,
    )


def _slugs(names: Iterable[str]) -> dict[str, str]:
    """For addresses: a name may have any character."""
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", check_name("database", name)).strip(".-") or "db"
        number = 1
        slug = plain
        while slug in found.values():
            number += 1
            slug = f"{plain}-{number}"
        found[name] = slug
    return found
