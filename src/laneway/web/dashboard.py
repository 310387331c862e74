"""The dashboard without a framework: a request goes in, a response comes out; and as a server of
its own.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from laneway import __version__
from laneway.client.aio.queue import AsyncQueue
from laneway.client.sync.queue import Queue
from laneway.errors import ConnectionUnavailable, InvalidOption, LanewayError
from laneway.operator import Operator, Principal, Right

from . import api
from .access import Access, Hook, Refused, is_foreign
from .actions import act, wrong_again
from .assets import asset, asset_version
from .cache import SharedCache
from .connections import Connections
from .context import Answer, Context, PageView
from .documents import Redact, as_json
from .hints import HintSource
from .operations import OperationHelper
from .pages import NUMBERED, PAGES, navigation, page_of
from .pages.starts import StartsFollower
from .reads import CachedReader
from .rendering import render
from .request import NotFound, WebRequest, WebResponse, status_of
from .results import SignedResults
from .sign_in import LOGIN, LOGOUT, is_public, safely, sign_in, sign_out

if TYPE_CHECKING:
    from laneway.exporter import Exporter


class Scrapes:
    """The exporter begins with the first scrape; without prometheus-client there is none."""

    def __init__(self, queue: Queue | Mapping[str, Queue]) -> None:
        self._queue = queue
        self._lock = threading.Lock()
        self._exporter: Exporter | None = None

    def respond(self, principal: Principal) -> WebResponse:
        if Right.VIEW not in principal.rights or principal.scoped:
            raise Refused("The metrics are of all channels, and you may not see all of them.")
        try:
            from laneway.exporter.exporter import CONTENT_TYPE, Exporter
        except ImportError as missing:
            return WebResponse(404, str(missing).encode(), "text/plain; charset=utf-8")
        with self._lock:
            if self._exporter is None:
                self._exporter = Exporter(self._queue)
        return WebResponse(200, self._exporter.scrape(), CONTENT_TYPE)


_log = logging.getLogger("laneway.web")

MOST_BODY = 1024 * 1024


class Dashboard:
    """Pages and /api/v1 for the schema that ``queue`` is a client of, on connections of its own.

    ``principal`` is called with the framework's request and returns who asks, or None. Without it
    ``token`` is asked for. Without both, ``trust_local`` lets in whoever comes from this machine,
    also through a proxy on it, and ``insecure`` everybody; one of the four is needed.
    ``read_only`` allows nothing that changes anything. ``redact`` is called with
    "payload", "error" or "headers" and a text, and returns what pages and API may show of it.
    ``trace_url`` is where a trace is found, with ``{trace}`` in place of its id.

    >>> app.mount("/queue", DashboardApp(Dashboard(queue, principal=who)))
    """

    def __init__(
        self,
        queue: Queue | AsyncQueue,
        *,
        principal: Hook | None = None,
        token: str | None = None,
        trust_local: bool = False,
        insecure: bool = False,
        read_only: bool = False,
        title: str = "Laneway",
        redact: Redact | None = None,
        trace_url: str | None = None,
    ) -> None:
        if not isinstance(queue, Queue | AsyncQueue):
            raise InvalidOption(f"dashboard() needs a Queue, not {type(queue).__name__}")
        self.access = Access(principal, token, trust_local, insecure, read_only)
        self.connections = Connections(queue, read_only)
        self.cache = SharedCache()
        self.hints = HintSource(self.connections)
        self.operations = OperationHelper(self.connections.acting, not read_only)
        self.starts = StartsFollower(self.connections.reading)
        self.title = title
        self.redact = redact
        self.trace_url = _checked_trace_url(trace_url)
        self.tabs: list[tuple[str, str, bool]] = []
        """The databases of a console that has several: name, place in addresses, and this one."""
        self._results = SignedResults(self.connections.secret)
        self._scrapes = Scrapes(self.connections.reading)

    def admit(self, head: WebRequest) -> WebRequest | WebResponse:
        """A request without its body: the same with who asks, or the answer to somebody who may
        not. Runs in a thread, as the hook may wait."""
        return safely(self.title, head, self._admit)

    def respond(self, request: WebRequest) -> WebResponse:
        """Never raises; waits for the database, so it runs in a thread."""
        self.operations.begin()
        admitted = request if request.principal else self.admit(request)
        if isinstance(admitted, WebResponse):
            return admitted
        return safely(self.title, admitted, self._respond)

    def begin(self) -> None:
        """Goes on with operations that were started before."""
        self.operations.begin()

    def close(self) -> None:
        """Closes the connections, and ends the streams of hints."""
        self.hints.close()
        self.operations.close()
        self.connections.close()

    def _admit(self, head: WebRequest) -> WebRequest | WebResponse:
        if head.method not in ("GET", "HEAD", "POST"):
            return WebResponse(405, b"Only GET and POST.", "text/plain", {"allow": "GET, POST"})
        if is_public(self.access, head):
            return head
        if head.method == "POST" and is_foreign(head):
            raise Refused(
                "This came from another site's page: nothing was done. "
                "A proxy in front has to pass on the Host header."
            )
        return replace(head, principal=self.access.principal(head))

    def _respond(self, request: WebRequest) -> WebResponse:
        if request.path.startswith("/static/"):
            return asset(request.path.removeprefix("/static/"))
        if request.path == LOGIN and self.access.sessions is not None:
            return sign_in(self.access, self.title, request)
        if request.path == LOGOUT and self.access.sessions is not None:
            return sign_out(self.access.sessions, request)
        principal = request.principal
        assert principal is not None
        reader = CachedReader(self.connections.reading, principal, self.cache)
        if request.path == "/metrics" and request.method != "POST":
            return self._scrapes.respond(principal)
        if request.path == "/live":
            return WebResponse(live=self.hints)
        if request.path.startswith(api.PREFIX):
            return self._api(request, reader)
        operator = Operator(self.connections.acting, principal, source="dashboard")
        context = Context(
            request,
            reader,
            operator,
            self.access.read_only,
            self.redact,
            self.starts,
            self.trace_url,
        )
        return self._page(context)

    def _api(self, request: WebRequest, reader: CachedReader) -> WebResponse:
        if request.path == f"{api.PREFIX}openapi.json":
            return WebResponse(200, as_json(api.openapi(__version__)), "application/json")
        operator = Operator(self.connections.acting, reader.principal, source="api")
        response = api.respond(request, reader, operator, self.redact)
        if request.method == "POST":
            self.cache.clear()
            if request.path.startswith(f"{api.PREFIX}operations/"):
                self.operations.wake()
        return response

    def _page(self, context: Context) -> WebResponse:
        request = context.request
        try:
            if request.method == "POST":
                if request.path != "/act":
                    raise NotFound("forms go to act")
                answer: Answer = act(context, self._results)
                self.cache.clear()
                if request.form.get("verb", "").startswith("start_"):
                    self.operations.wake()
            else:
                answer = page_of(context)
        except LanewayError as error:
            context, answer = wrong_again(context, error) or (context, _problem(error))
        if isinstance(answer, WebResponse):
            return answer
        return WebResponse(answer.status, self._render(context, answer))

    def _render(self, context: Context, view: PageView) -> bytes:
        done = context.params.get("done")
        name = context.principal.name
        values = {
            "c": context,
            "title": view.title,
            "site": self.title,
            "version": __version__,
            "assets": asset_version(),
            "pages": navigation(context),
            "stale": context.reader.stale,
            "result": self._results.read(done, name) if done else None,
            "live": view.template in LIVE,
            "api": True,
            "tabs": self.tabs,
            "root": context.request.root,
            "signed_in": self.access.signed_in(context.request),
        }
        return render(view.template, values | view.values)


LIVE = frozenset(page.template for page in (*PAGES.values(), *NUMBERED.values()) if page.live)


def _checked_trace_url(url: str | None) -> str:
    if url is None:
        return ""
    if not url.startswith(("https://", "http://")) or "{trace}" not in url:
        raise InvalidOption(
            "trace_url must begin with https:// and have {trace} where the trace's id goes"
        )
    return url


def _problem(error: LanewayError) -> PageView:
    away = isinstance(error, ConnectionUnavailable)
    title = {
        403: "Not allowed",
        404: "Not found",
        400: "That cannot be done",
        409: "Nothing was done",
    }.get(status_of(error), "The database does not answer" if away else "That failed")
    return PageView("problem.html", title, {"text": str(error), "away": away}, status_of(error))


class AnyDashboard(Protocol):
    """A dashboard of one database or of several."""

    access: Access
    title: str

    def admit(self, head: WebRequest) -> WebRequest | WebResponse: ...
    def respond(self, request: WebRequest) -> WebResponse: ...
    def begin(self) -> None: ...
    def close(self) -> None: ...
