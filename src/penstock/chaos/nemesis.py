"""What goes wrong, and when: decided by the seed alone, done to whoever lives then."""

import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from .crew import CONSUMERS, ROLES, Crew
from .holding import Holder
from .ledger import Ledger
from .places import Place
from .proxy import Proxy
from .stage import LEASE

FOREVER = 1e9
HEALING = 3.0  # seconds until every client has found a server that is back
RESTART = 20.0


class Fault(NamedTuple):
    at: float
    kind: str
    role: str
    twist: float


WEIGHTS = {
    "kill": 5, "stop": 3, "term": 2, "cut": 6, "server": 1, "snapshot": 1, "lock": 1, "disk": 1,
    "promote": 0,
}  # fmt: skip
ROLE_KINDS = {
    "kill": tuple(ROLES), "stop": CONSUMERS, "term": CONSUMERS, "cut": tuple(ROLES),
}  # fmt: skip


def decide(seed: int, seconds: float, kinds: list[str]) -> list[Fault]:
    """The faults of a run; one of each kind comes early, so that a short run has them all. Poison
    is in the messages."""
    dice = random.Random(f"{seed}/nemesis")
    kinds = [kind for kind in kinds if kind != "poison"]
    first = dice.sample(kinds, len(kinds))
    faults, at = [], 1.5
    while at < seconds and kinds:
        weights = [WEIGHTS[kind] for kind in kinds]
        kind = first.pop() if first else dice.choices(kinds, weights)[0]
        role = dice.choice(ROLE_KINDS.get(kind, ("*",)))
        faults.append(Fault(at, kind, role, dice.random()))
        at += dice.uniform(0.5, 1.5)
    return faults


class Nemesis:
    def __init__(
        self, place: Place, crew: Crew, proxy: Proxy | None, ledger: Ledger, holder: Holder
    ) -> None:
        self._place = place
        self._crew = crew
        self._proxy = proxy
        self._ledger = ledger
        self._holder = holder
        self._later: list[tuple[float, Callable[[], None]]] = []

    def strike(self, fault: Fault) -> None:
        getattr(self, f"_{fault.kind}")(fault)

    def tick(self) -> None:
        """Undoes what was to last for a while only."""
        now = time.monotonic()
        due = [action for at, action in self._later if at <= now]
        self._later = [item for item in self._later if item[0] > now]
        for action in due:
            action()

    def relent(self) -> None:
        """Everything that was held is let go."""
        for _, action in self._later:
            action()
        self._later = []

    def _note(self, kind: str, target: str, span: float) -> None:
        self._ledger.note("fault", kind=kind, target=target, span=span)

    def _kill(self, fault: Fault) -> None:
        self._note("kill", self._crew.name(fault.role), FOREVER)
        self._crew.signal(fault.role, signal.SIGKILL, group=fault.twist < 0.5)

    def _term(self, fault: Fault) -> None:
        """No fault: whoever is asked to stop loses nothing."""
        self._ledger.note("term", target=self._crew.name(fault.role))
        self._crew.signal(fault.role, signal.SIGTERM)

    def _stop(self, fault: Fault) -> None:
        span = LEASE.total_seconds() * 0.6 + fault.twist * LEASE.total_seconds()
        name, group = self._crew.name(fault.role), fault.twist < 0.5
        # Where one writer holds up all others, a stopped one is everybody's trouble.
        self._note("stop", "*" if self._place.one_writer else name, span + 1)
        self._crew.signal(fault.role, signal.SIGSTOP, group)

        def wake() -> None:
            if self._crew.name(fault.role) == name:
                self._ledger.note("resumed_process", target=name)
                self._crew.signal(fault.role, signal.SIGCONT, group)

        self._later.append((time.monotonic() + span, wake))

    def _cut(self, fault: Fault) -> None:
        assert self._proxy is not None
        name = self._crew.name(fault.role)
        self._note("cut", name, HEALING)
        self._proxy.cut(name, "sent" if fault.twist < 0.7 else "swallowed")

    def _server(self, fault: Fault) -> None:
        assert self._place.server is not None
        begun = time.time()
        self._place.server.kill()
        time.sleep(fault.twist)
        self._place.server.start()
        self._ledger.note("server_back")
        span = time.time() - begun + HEALING
        self._ledger.note("fault", kind="server", target="*", t=begun, span=span)

    def _disk(self, fault: Fault) -> None:
        """The server may stop and start by itself meanwhile, or not come up until there is room."""
        assert self._place.disk is not None
        begun = time.time()
        self._place.disk.fill()
        time.sleep(0.3 + fault.twist)
        self._place.disk.empty()
        deadline = time.monotonic() + RESTART
        while self._place.server is not None and time.monotonic() < deadline:
            self._place.server.start()
            if self._holder.reaches_server():
                break
            time.sleep(0.1)
        span = time.time() - begun + HEALING
        self._ledger.note("fault", kind="disk", target="*", t=begun, span=span)

    def _promote(self, fault: Fault) -> None:
        """The server is killed for good, and its replica takes over."""
        assert self._place.pair is not None and self._proxy is not None
        begun = time.time()
        self._proxy.lead_to(self._place.pair.promote())
        self._ledger.note("server_back")
        span = time.time() - begun + HEALING
        self._ledger.note("fault", kind="promote", target="*", t=begun, span=span)

    def _snapshot(self, fault: Fault) -> None:
        """No fault either: it only costs."""
        self._ledger.note("snapshot")
        self._later.append((time.monotonic() + 5 + 5 * fault.twist, self._holder.snapshot()))

    def _lock(self, fault: Fault) -> None:
        span = 0.5 + 2.5 * fault.twist
        self._note("lock", "*", span + 1)
        self._later.append((time.monotonic() + span, self._holder.lock()))
