"""Notices when the machine itself stands still: what runs out then is nobody's fault."""

import threading
import time
from types import TracebackType
from typing import Self

from .ledger import Ledger

STEP = 0.1
LONG = 1.0  # seconds: a thread that only sleeps was not woken for so long


class StallWatch:
    """Notes each stall as something that happened to everybody."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        begun = time.time()
        while not self._stopping.wait(STEP):
            now = time.time()
            if now - begun > LONG:
                self._ledger.note("fault", kind="stall", target="*", t=begun, span=now - begun + 1)
            begun = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
