"""One run: set the stage, let everything go wrong, wait for the end, settle the accounts."""

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock import PenstockError, Policy, Queue
from penstock.embedded_pgbouncer import PgBouncer, pgbouncer_binary
from penstock.errors import InvalidOption, SchemaMissing

from .checker import check, read_ledgers
from .crew import CONSUMERS, ROLES, Crew
from .dumping import dump
from .holding import Holder
from .ledger import Ledger
from .meddler import resume
from .nemesis import Fault, Nemesis, decide
from .places import Place, open_place
from .proxy import Proxy
from .sampler import Sampler
from .stage import (
    BACKLOG,
    BURST,
    FULL,
    HAND,
    LINE,
    RANKED,
    RATE,
    RATED,
    SCHEMA,
    TIGHT,
    TIGHT_LIMIT,
    WORK,
    Stage,
    channel,
    order,
    sql,
)  # fmt: skip
from .stalls import StallWatch

TICK = 0.05

POLICIES = {
    LINE: Policy(concurrency=1),
    TIGHT: Policy(concurrency=TIGHT_LIMIT),
    RATED: Policy(rate=RATE, burst=BURST),
    RANKED: Policy(concurrency=1),
    FULL: Policy(concurrency=1, backlog=BACKLOG),
}


def run(
    engine: str,
    seed: int,
    seconds: float,
    url: str | None = None,
    keep: Path | None = None,
    patience: float = 180,
    faults: Sequence[str] | None = None,
    through: str | None = None,
) -> dict[str, Any]:
    """The verdict. The ledgers and the dump stay in ``keep`` if it is given; ``patience`` is how
    long what is left after the last fault may take."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    try:
        with open_place(engine, url, faults) as place, ExitStack() as stack:
            kinds = list(faults or place.faults())
            proxy, pooled = _open_way(place, through, stack)
            home = place.url if proxy is None else place.through(proxy.open("director"))
            stage = Stage(
                place.engine, home, "director", seed, str(folder), pooled=pooled,
                poison="poison" in kinds,
            )  # fmt: skip
            document = _Run(place, stage, proxy, kinds, seconds, patience).go()
        (folder / "dump.json").write_text(json.dumps(document))
        verdict = check(read_ledgers(folder), document)
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    terms = {"faults": ",".join(faults or ()) or None, "through": through}
    return {"engine": place.engine, "seed": seed, "seconds": seconds, **terms, **verdict}


def _open_way(place: Place, through: str | None, stack: ExitStack) -> tuple[Proxy | None, bool]:
    """The way to a server of our own, and whether it leads through a pooler."""
    if through is not None and (through != "pgbouncer" or place.engine != "postgresql"):
        raise InvalidOption("there is pgbouncer to go through, to PostgreSQL")
    if place.server is None:
        if through is not None:
            raise InvalidOption("a given database is reached as it is: put PgBouncer in its URL")
        return None, False
    port = place.port
    if through is not None:
        if place.pair is not None:
            raise InvalidOption("a promotion behind PgBouncer is not played: choose one of them")
        port = stack.enter_context(_bouncer(port)).port
    proxy = Proxy(port)
    stack.callback(proxy.close)
    return proxy, through is not None


def _bouncer(port: int) -> PgBouncer:
    binary = pgbouncer_binary()
    if binary is None:
        raise InvalidOption("no pgbouncer is here: on Debian, the package of that name has it")
    return PgBouncer(binary, "127.0.0.1", port)


class _Run:
    def __init__(
        self,
        place: Place,
        stage: Stage,
        proxy: Proxy | None,
        kinds: list[str],
        seconds: float,
        patience: float,
    ) -> None:
        self._place = place
        self._stage = stage
        self._proxy = proxy
        self._kinds = kinds
        self._seconds = seconds
        self._patience = patience
        self._ledger = stage.ledger()

    def go(self) -> dict[str, Any]:
        with self._stage.queue() as queue, ExitStack() as stack:
            self._check_absent(queue)
            stack.callback(self._remove, queue)
            position = self._install(queue)
            crew = stack.enter_context(Crew(self._stage, self._route))
            holder = Holder(self._stage)
            nemesis = Nemesis(self._place, crew, self._proxy, self._ledger, holder)
            watching = Ledger(Path(self._stage.folder), "sampler")
            with Sampler(self._stage, queue, watching), StallWatch(self._ledger):
                crew.start()
                crew.wait_until_begun()
                self._trouble(crew, nemesis)
                self._drain(crew, queue)
            return dump(self._stage, queue, position)

    def _check_absent(self, queue: Queue) -> None:
        """What is there is somebody else's run, or the rest of one that was killed."""
        with suppress(SchemaMissing):
            queue.schema_version()
            raise InvalidOption(
                f"there is a schema {SCHEMA!r} already: if no other run is at work, remove it with "
                f"Queue(url, schema={SCHEMA!r}).uninstall()"
            )

    def _install(self, queue: Queue) -> str:
        queue.install()
        queue.configure(backoff_first=timedelta(milliseconds=100))
        queue._core.run(order(sql(self._stage.engine, "effect_table")))
        for number, (name, target) in enumerate((n, q) for n in POLICIES for q in (WORK, HAND)):
            self._limit(queue, number, channel(name, target), target, POLICIES[name])
        return queue.history_since().position

    def _limit(self, queue: Queue, number: int, name: str, target: str, policy: Policy) -> None:
        self._ledger.note(
            "policy_tried", number=number, channel=name, concurrency=policy.concurrency,
            rate=policy.rate, burst=policy.burst, backlog=policy.backlog,
        )  # fmt: skip
        queue.set_policies({name: policy}, queue=target)
        self._ledger.note("policy_set", number=number, channel=name)

    def _remove(self, queue: Queue) -> None:
        with suppress(SchemaMissing):
            queue._core.run(order(sql(self._stage.engine, "drop_effects")))
            queue.uninstall()

    def _route(self, name: str) -> str:
        if self._proxy is None:
            return self._place.url
        return self._place.through(self._proxy.open(name))

    def _trouble(self, crew: Crew, nemesis: Nemesis) -> None:
        faults: list[Fault] = decide(self._stage.seed, self._seconds, self._kinds)
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < self._seconds:
            nemesis.tick()
            crew.replace_dead()
            if faults and faults[0].at <= now:
                nemesis.strike(faults.pop(0))
            time.sleep(TICK)
        nemesis.relent()

    def _drain(self, crew: Crew, queue: Queue) -> None:
        """No more faults and no more messages: what is there must come to an end."""
        crew.retire([role for role in ROLES if role not in CONSUMERS], 10)
        deadline = time.monotonic() + self._patience
        resumed: set[str] = set()
        while time.monotonic() < deadline:
            crew.replace_dead()
            with suppress(PenstockError):
                for name in {WORK, HAND} - resumed:
                    resume(queue, self._ledger.note, name)
                    resumed.add(name)
                if not queue.messages(limit=1):
                    break
            time.sleep(0.2)
        crew.retire(list(CONSUMERS), 20)


def replay_line(verdict: dict[str, Any]) -> str:
    extras = (f" --{name} {verdict[name]}" for name in ("faults", "through") if verdict[name])
    return (
        f"penstock chaos --engine {verdict['engine']} --seed {verdict['seed']} "
        f"--seconds {verdict['seconds']:g}{''.join(extras)}"
    )
