"""One run: install, start the processes, inject faults, drain, check."""

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from laneway import LanewayError, Policy, Queue
from laneway.dev.embedded import PgBouncer, pgbouncer_binary
from laneway.durations import to_seconds
from laneway.errors import InvalidOption, SchemaMissing

from .app_connection import Blocker
from .checker import check, read_ledgers
from .config import (
    ADAPTING,
    ADAPTS,
    BACKLOG,
    BOUNDED,
    BREAKING,
    BREAKS,
    BURST,
    ENDLESS,
    LIMIT,
    LIMITED,
    MANUAL,
    ORDERED,
    PACE,
    PRIORITIZED,
    RATE,
    RATED,
    REPLACED,
    SCHEMA,
    SHARED,
    SHARED_BURST,
    SHARED_RATE,
    SHARED_SLOTS,
    SLOTS,
    WORK,
    RunConfig,
    channel,
    script,
    sql,
)  # fmt: skip
from .dump import Sampler, StallWatch, settled_dump
from .ledger import Ledger
from .nemesis import Fault, Nemesis, plan_faults
from .operator_process import SCOPES, cancel, resume, run_now
from .processes import CONSUMERS, ROLES, ProcessSet
from .proxy import Proxy
from .targets import RunTarget, open_target

TICK = 0.05
FAR = timedelta(minutes=1)
UNANNOUNCED = "pgbouncer-unannounced"
POOLERS = ("pgbouncer", UNANNOUNCED)
COUNTED_WITHIN = 40.0  # seconds; late commits are looked for again after 1, 5 and 25

POLICIES = {
    ORDERED: Policy(concurrency=1),
    LIMITED: Policy(concurrency=LIMIT),
    RATED: Policy(rate=RATE, burst=BURST),
    PRIORITIZED: Policy(concurrency=1),
    BOUNDED: Policy(concurrency=1, backlog=BACKLOG),
    REPLACED: Policy(concurrency=LIMIT),
}


def run(
    engine: str,
    seed: int,
    seconds: float,
    url: str | None = None,
    keep: Path | None = None,
    drain_timeout: float = 180,
    faults: Sequence[str] | None = None,
    through: str | None = None,
    by_kind: bool = False,
) -> dict[str, Any]:
    """Returns the verdict. The ledgers and the dump are copied to ``keep`` if it is given;
    ``drain_timeout`` is how many seconds the remaining messages may take after the last fault."""
    folder = Path(tempfile.mkdtemp(prefix="laneway-chaos-"))
    try:
        with open_target(engine, url, faults) as target, ExitStack() as stack:
            kinds = list(faults or target.faults())
            proxy = _open_proxy(target, through, stack)
            home = target.url if proxy is None else target.through(proxy.open("controller"))
            config = RunConfig(
                target.engine, home, "controller", seed, str(folder),
                pooled=through is not None, announced=through != UNANNOUNCED,
                poison="poison" in kinds, by_kind=by_kind,
            )  # fmt: skip
            document = _Run(target, config, proxy, kinds, seconds, drain_timeout).go()
        (folder / "dump.json").write_text(json.dumps(document))
        verdict = check(read_ledgers(folder), document)
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    terms = {"faults": ",".join(faults or ()) or None, "through": through, "by_kind": by_kind}
    return {"engine": target.engine, "seed": seed, "seconds": seconds, **terms, **verdict}


def _open_proxy(target: RunTarget, through: str | None, stack: ExitStack) -> Proxy | None:
    """The proxy before a server of our own, or before a pooler."""
    if through is not None and (through not in POOLERS or target.engine != "postgresql"):
        raise InvalidOption(
            f"--through takes {' or '.join(POOLERS)}, and only with --engine postgresql"
        )
    if target.server is None:
        if through is not None:
            raise InvalidOption(
                "--through cannot be combined with --url: put PgBouncer's address into the URL"
            )
        return None
    port = target.port
    if through is not None:
        if target.pair is not None:
            raise InvalidOption(
                "the promote fault cannot be combined with --through pgbouncer: choose one of them"
            )
        port = stack.enter_context(_bouncer(port)).port
    proxy = Proxy(port)
    stack.callback(proxy.close)
    return proxy


def _bouncer(port: int) -> PgBouncer:
    binary = pgbouncer_binary()
    if binary is None:
        raise InvalidOption("pgbouncer is not installed: on Debian, apt-get install pgbouncer")
    return PgBouncer(binary, "127.0.0.1", port)


class _Run:
    def __init__(
        self,
        target: RunTarget,
        config: RunConfig,
        proxy: Proxy | None,
        kinds: list[str],
        seconds: float,
        drain_timeout: float,
    ) -> None:
        self._target = target
        self._config = config
        self._proxy = proxy
        self._kinds = kinds
        self._seconds = seconds
        self._drain_timeout = drain_timeout
        self._ledger = config.ledger()

    def go(self) -> dict[str, Any]:
        with self._config.queue() as queue, ExitStack() as stack:
            self._check_absent(queue)
            stack.callback(self._remove, queue)
            position, begun = self._install(queue)
            processes = stack.enter_context(ProcessSet(self._config, self._route))
            blocker = Blocker(self._config)
            nemesis = Nemesis(self._target, processes, self._proxy, self._ledger, blocker)
            sampled = Ledger(Path(self._config.folder), "sampler")
            with Sampler(self._config, queue, sampled), StallWatch(self._ledger):
                processes.start()
                processes.wait_until_begun()
                self._inject_faults(processes, nemesis)
                self._drain(processes, queue)
            processes.end()
            wait = min(self._drain_timeout, COUNTED_WITHIN)
            return settled_dump(self._config, queue, position, begun, wait)

    def _check_absent(self, queue: Queue) -> None:
        """A schema that exists belongs to another run, or to one that was killed."""
        with suppress(SchemaMissing):
            queue.schema_version()
            raise InvalidOption(
                f"schema {SCHEMA!r} exists already: if no other run is going on, remove it with "
                f"Queue(url, schema={SCHEMA!r}).uninstall()"
            )

    def _install(self, queue: Queue) -> tuple[str, datetime]:
        queue.install()
        queue.configure(backoff_initial=timedelta(milliseconds=100))
        queue.database.run(script(sql(self._config.engine, "create_effects")))
        for number, (name, target) in enumerate((n, q) for n in POLICIES for q in (WORK, MANUAL)):
            self._limit(queue, number, channel(name, target), target, POLICIES[name])
        self._share(queue, SLOTS, concurrency=SHARED_SLOTS)
        self._share(queue, PACE, rate=SHARED_RATE, burst=SHARED_BURST)
        self._control(queue)
        return queue.history_since().position, queue.clock()

    def _limit(self, queue: Queue, number: int, name: str, target: str, policy: Policy) -> None:
        self._ledger.record(
            "policy_tried", number=number, channel=name, concurrency=policy.concurrency,
            rate=policy.rate, burst=policy.burst, backlog=policy.backlog,
        )  # fmt: skip
        queue.set_policies({name: policy}, queue=target)
        self._ledger.record("policy_set", number=number, channel=name)

    def _share(self, queue: Queue, name: str, **limits: Any) -> None:
        queue.limits[name].set(**limits)
        self._ledger.record("limit_set", name=name, **limits)

    def _control(self, queue: Queue) -> None:
        """Limits that adapt and break; for the checker: how many at most, and the pause."""
        queue.limits[ADAPTING].set(concurrency=2, adapt=ADAPTS)
        self._ledger.record("limit_set", name=ADAPTING, concurrency=ADAPTS.max)
        queue.limits[BREAKING].set(concurrency=SHARED_SLOTS, breaker=BREAKS)
        pause = to_seconds(BREAKS.pause)
        self._ledger.record("limit_set", name=BREAKING, concurrency=SHARED_SLOTS, pause=pause)

    def _remove(self, queue: Queue) -> None:
        with suppress(SchemaMissing):
            queue.database.run(script(sql(self._config.engine, "drop_effects")))
            queue.uninstall()

    def _route(self, name: str) -> str:
        if self._proxy is None:
            return self._target.url
        return self._target.through(self._proxy.open(name))

    def _inject_faults(self, processes: ProcessSet, nemesis: Nemesis) -> None:
        faults: list[Fault] = plan_faults(self._config.seed, self._seconds, self._kinds)
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < self._seconds:
            nemesis.tick()
            processes.replace_dead()
            if faults and faults[0].at <= now:
                nemesis.inject(faults.pop(0))
            time.sleep(TICK)
        nemesis.undo_all()

    def _drain(self, processes: ProcessSet, queue: Queue) -> None:
        """No more faults and no new messages: every message left must end."""
        processes.stop([role for role in ROLES if role not in CONSUMERS], 10)
        deadline = time.monotonic() + self._drain_timeout
        paused = list(SCOPES)
        while time.monotonic() < deadline:
            processes.replace_dead()
            with suppress(LanewayError):
                while paused:
                    resume(queue, self._ledger, paused[-1])
                    paused.pop()
                if self._is_drained(queue):
                    break
            time.sleep(0.2)
        processes.stop(list(CONSUMERS), 20)

    def _is_drained(self, queue: Queue) -> bool:
        """Hurries what would start after the run, stops what would never end, and helps with what
        operators have begun."""
        left = queue.messages(limit=1000)
        far = queue.clock() + FAR
        scheduled = [m for m in left if m.due is not None and m.due > far]
        # What waits for a shared limit must start by itself.
        if later := [m.id for m in scheduled if not m.channel.startswith(SHARED)]:
            run_now(queue, self._ledger, later)
        if endless := [m.id for m in left if m.kind == ENDLESS]:
            cancel(queue, self._ledger, endless, running=True)
        begun = [one for one in queue.operations.list(limit=1000) if one.state == "running"]
        for one in begun:
            queue.operations.step(one.id)
        return not left and not begun


def replay_line(verdict: dict[str, Any]) -> str:
    extras = (f" --{name} {verdict[name]}" for name in ("faults", "through") if verdict[name])
    return (
        f"laneway chaos --engine {verdict['engine']} --seed {verdict['seed']} "
        f"--seconds {verdict['seconds']:g}{''.join(extras)}{' --by-kind' * verdict['by_kind']}"
    )
