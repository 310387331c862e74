"""Which faults happen and when: the seed alone decides; they hit the processes alive then."""

import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from .app_connection import Blocker
from .config import CALL_TIMEOUT, LEASE
from .ledger import Ledger
from .processes import CONSUMERS, ROLES, ProcessSet
from .proxy import Proxy
from .targets import RunTarget

FOREVER = 1e9
RECONNECT = 3.0  # seconds until every client has reconnected to a server that is back
RESTART = 20.0
SILENCE = 5.0 + CALL_TIMEOUT + RECONNECT  # an idle connection is asked for 5 s whether it lives


class Fault(NamedTuple):
    at: float
    kind: str
    role: str
    variation: float


WEIGHTS = {
    "kill": 5, "stop": 3, "term": 2, "cut": 6, "silent": 2, "idle": 1, "server": 1, "snapshot": 1,
    "lock": 1, "disk": 1, "promote": 0,
}  # fmt: skip
ROLE_KINDS = {
    "kill": tuple(ROLES), "stop": CONSUMERS, "term": CONSUMERS, "cut": tuple(ROLES),
    "silent": tuple(ROLES),
}  # fmt: skip


def plan_faults(seed: int, seconds: float, kinds: list[str]) -> list[Fault]:
    """The faults of a run; one of each kind comes early, so that a short run has them all. Poison
    is not among them: it is in the messages."""
    rng = random.Random(f"{seed}/nemesis")
    kinds = [kind for kind in kinds if kind != "poison"]
    first = rng.sample(kinds, len(kinds))
    faults, at = [], 1.5
    while at < seconds and kinds:
        weights = [WEIGHTS[kind] for kind in kinds]
        kind = first.pop() if first else rng.choices(kinds, weights)[0]
        role = rng.choice(ROLE_KINDS.get(kind, ("*",)))
        faults.append(Fault(at, kind, role, rng.random()))
        at += rng.uniform(0.5, 1.5)
    return faults


class Nemesis:
    def __init__(
        self,
        target: RunTarget,
        processes: ProcessSet,
        proxy: Proxy | None,
        ledger: Ledger,
        blocker: Blocker,
    ) -> None:
        self._target = target
        self._processes = processes
        self._proxy = proxy
        self._ledger = ledger
        self._blocker = blocker
        self._undo: list[tuple[float, Callable[[], None]]] = []

    def inject(self, fault: Fault) -> None:
        getattr(self, f"_{fault.kind}")(fault)

    def tick(self) -> None:
        """Ends the faults whose time is over."""
        now = time.monotonic()
        due = [action for at, action in self._undo if at <= now]
        self._undo = [item for item in self._undo if item[0] > now]
        for action in due:
            action()

    def undo_all(self) -> None:
        """Ends all faults that still last."""
        for _, action in self._undo:
            action()
        self._undo = []

    def _record(self, kind: str, target: str, span: float) -> None:
        self._ledger.record("fault", kind=kind, target=target, span=span)

    def _kill(self, fault: Fault) -> None:
        self._record("kill", self._processes.name(fault.role), FOREVER)
        self._processes.signal(fault.role, signal.SIGKILL, group=fault.variation < 0.5)

    def _term(self, fault: Fault) -> None:
        """Not a fault: a process that is asked to stop loses nothing."""
        self._ledger.record("term", target=self._processes.name(fault.role))
        self._processes.signal(fault.role, signal.SIGTERM)

    def _stop(self, fault: Fault) -> None:
        span = LEASE.total_seconds() * 0.6 + fault.variation * LEASE.total_seconds()
        name, group = self._processes.name(fault.role), fault.variation < 0.5
        # Where one writer blocks all others, a stopped one affects everybody.
        self._record("stop", "*" if self._target.single_writer else name, span + 1)
        self._processes.signal(fault.role, signal.SIGSTOP, group)

        def wake() -> None:
            if self._processes.name(fault.role) == name:
                self._ledger.record("resumed_process", target=name)
                self._processes.signal(fault.role, signal.SIGCONT, group)

        self._undo.append((time.monotonic() + span, wake))

    def _cut(self, fault: Fault) -> None:
        assert self._proxy is not None
        name = self._processes.name(fault.role)
        self._record("cut", name, RECONNECT)
        self._proxy.cut(name, "sent" if fault.variation < 0.7 else "swallowed")

    def _silent(self, fault: Fault) -> None:
        """Connections stay open, and nothing comes through any more: all that the process has, or
        the next that it uses."""
        assert self._proxy is not None
        name = self._processes.name(fault.role)
        self._record("silent", name, SILENCE)
        if fault.variation < 0.4:
            self._proxy.silence(name)
        else:
            self._proxy.cut(name, "sent, then silent" if fault.variation < 0.7 else "silent")

    def _idle(self, fault: Fault) -> None:
        """Not a fault: nobody notices that an idle connection has ended."""
        self._ledger.record("idle")
        self._undo.append((time.monotonic() + 3 + 4 * fault.variation, self._blocker.end_idle()))

    def _server(self, fault: Fault) -> None:
        assert self._target.server is not None
        begun = time.time()
        self._target.server.kill()
        time.sleep(fault.variation)
        self._target.server.start()
        self._ledger.record("server_back")
        span = time.time() - begun + RECONNECT
        self._ledger.record("fault", kind="server", target="*", t=begun, span=span)

    def _disk(self, fault: Fault) -> None:
        """The server may restart by itself meanwhile, or not start until there is room."""
        assert self._target.disk is not None
        begun = time.time()
        self._target.disk.fill()
        time.sleep(0.3 + fault.variation)
        self._target.disk.empty()
        deadline = time.monotonic() + RESTART
        while self._target.server is not None and time.monotonic() < deadline:
            self._target.server.start()
            if self._blocker.reaches_server():
                break
            time.sleep(0.1)
        span = time.time() - begun + RECONNECT
        self._ledger.record("fault", kind="disk", target="*", t=begun, span=span)

    def _promote(self, fault: Fault) -> None:
        """The server is killed for good, and its replica takes over."""
        assert self._target.pair is not None and self._proxy is not None
        begun = time.time()
        self._proxy.redirect(self._target.pair.promote())
        self._ledger.record("server_back")
        span = time.time() - begun + RECONNECT
        self._ledger.record("fault", kind="promote", target="*", t=begun, span=span)

    def _snapshot(self, fault: Fault) -> None:
        """Not a fault either: it only costs time."""
        self._ledger.record("snapshot")
        self._undo.append((time.monotonic() + 5 + 5 * fault.variation, self._blocker.snapshot()))

    def _lock(self, fault: Fault) -> None:
        span = 0.5 + 2.5 * fault.variation
        self._record("lock", "*", span + 1)
        self._undo.append((time.monotonic() + span, self._blocker.lock()))
