"""/metrics: what ``laneway exporter`` answers, for those who run a dashboard anyway."""

import threading
from typing import TYPE_CHECKING

from laneway.client.sync.queue import Queue
from laneway.operator import Principal, Right

from .access import Refused
from .request import WebResponse

if TYPE_CHECKING:
    from laneway.exporter import Exporter


class Scrapes:
    """The exporter begins with the first scrape; without prometheus-client there is none."""

    def __init__(self, queue: Queue) -> None:
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
