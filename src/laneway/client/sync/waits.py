"""How readers rest between two looks, and the bell that rings when a message with a kept result
ends."""

import asyncio
import logging
import threading
import time
from datetime import timedelta
from time import sleep as pause

from laneway.client.shared.checks import blocks_a_loop
from laneway.client.shared.options import ClientAddress
from laneway.drivers.choice import open_notifier
from laneway.errors import InvalidCall, LanewayError

from .database import Database

# How readers rest between two looks: for a while, because bells ring in event loops only.

__all__ = ["RING", "EndBell", "IdleWait", "check_loop", "pause"]


def check_loop(verb: str, connection: object) -> None:
    """Everything in the event loop would wait for the database. On the caller's own connection it
    may be right, as in the run_sync() of an AsyncSession."""
    if connection is None and blocks_a_loop():
        raise InvalidCall(
            f"Queue.{verb}() would block the event loop: write await queue.{verb}() with an "
            f"AsyncQueue, or await asyncio.to_thread(queue.{verb}, …)"
        )


# Seconds.
_FIRST = 0.01
_MOST = 0.25


class IdleWait:
    """The rest of one reader."""

    def __init__(self, database: Database, address: ClientAddress) -> None:
        """Needs neither; see the other world's."""

    def until_next(self, mailbox: str, idle: float) -> None:
        """After a look that brought nothing, ``idle`` seconds after the last that did."""
        pause(min(max(idle / 4, _FIRST), _MOST))

    def found(self) -> None:
        """After a look that brought something: nothing to do."""

    def close(self) -> None:
        """Nothing is open."""


# The bell that rings when a message with a kept result ends, for threads: one thread of the client
# listens for all who wait. A ring is a hint: whoever waits also looks again after a while.

_log = logging.getLogger("laneway")

RING = "kept results"
"""What the database calls out."""

_ASLEEP_FOR = timedelta(seconds=60)
# Seconds.
_RENEW_EVERY = 45.0
_LISTEN = 1.0
_AT_MOST_EVERY = 0.02


class EndBell:
    """Its thread starts when somebody waits, and ends when nobody has for a minute or when the
    client is closed."""

    def __init__(self, database: Database, address: ClientAddress) -> None:
        self._database = database
        self._address = address
        self._lock = threading.Lock()
        self._ring = threading.Event()
        self._waiting = 0
        self._thread: threading.Thread | None = None
        self._closing: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._closed = False

    @classmethod
    def of(cls, database: Database, address: ClientAddress) -> "EndBell":
        """The client's one bell."""
        bell = database.end_bell
        if not isinstance(bell, cls):
            bell = database.end_bell = cls(database, address)
            database.at_close.add(bell.close)
        return bell

    def next_ring(self) -> threading.Event:
        """Set at the next ring; to be taken before looking, so that none is missed."""
        return self._ring

    def wait(self, ring: threading.Event, seconds: float) -> None:
        """Until that ring, or for so long."""
        with self._lock:
            self._waiting += 1
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._work, name="laneway-results", daemon=True
                )
                self._thread.start()
        try:
            ring.wait(seconds)
        finally:
            with self._lock:
                self._waiting -= 1

    def close(self) -> None:
        self._database.at_close.discard(self.close)
        self._database.end_bell = None
        with self._lock:
            self._closed = True
            thread, closing = self._thread, self._closing
            if closing is not None:
                closing[0].call_soon_threadsafe(closing[1].set)
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        try:
            asyncio.run(self._listen())
        except Exception as error:  # of any driver: whoever waits polls
            _log.info("waiting for messages by polling: %s", error)
        with self._lock:
            self._closing = None
            self._thread = None

    async def _listen(self) -> None:
        closing = asyncio.Event()
        with self._lock:
            if self._closed:
                return
            self._closing = (asyncio.get_running_loop(), closing)
        channel = self._database.run(self._database.engine.claims.notify_channel())
        url, pooler = self._address.url, self._address.pooler
        notifier = open_notifier(url, channel=channel, wanted=frozenset([RING]), pooler=pooler)
        ended = asyncio.create_task(closing.wait())
        renew_at = 0.0
        try:
            while not closing.is_set():
                if time.monotonic() >= renew_at:
                    with self._lock:
                        if not self._waiting and renew_at:
                            return
                    renew_at = time.monotonic() + _RENEW_EVERY
                    self._ask_to_be_told()
                heard = asyncio.create_task(notifier.wait(_LISTEN))
                await asyncio.wait([heard, ended], return_when=asyncio.FIRST_COMPLETED)
                if heard.done() and heard.result():
                    ring, self._ring = self._ring, threading.Event()
                    ring.set()
                    await asyncio.sleep(_AT_MOST_EVERY)
                heard.cancel()
        finally:
            ended.cancel()
            await notifier.close()

    def _ask_to_be_told(self) -> None:
        worker = f"{RING} of {self._database.options.worker}"
        try:
            self._database.run(self._database.engine.claims.sleep((RING,), worker, _ASLEEP_FOR))
        except LanewayError as error:
            _log.debug("could not ask to be told of results: %s", error)
