"""One run: set the stage, let everything go wrong, wait for the end, settle the accounts."""

import json
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock import PenstockError, Policy, Queue

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
    TIGHT,
    TIGHT_LIMIT,
    WORK,
    Stage,
    channel,
    order,
    sql,
)  # fmt: skip

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
    patience: float = 60,
) -> dict[str, Any]:
    """The verdict. The ledgers and the dump stay in ``keep`` if it is given; ``patience`` is how
    long what is left after the last fault may take."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    try:
        with open_place(engine, url) as place:
            stage = Stage(place.engine, place.url, "director", seed, str(folder))
            document = _Run(place, stage, seconds, patience).go()
        (folder / "dump.json").write_text(json.dumps(document))
        verdict = check(read_ledgers(folder), document)
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"engine": place.engine, "seed": seed, "seconds": seconds, **verdict}


class _Run:
    def __init__(self, place: Place, stage: Stage, seconds: float, patience: float) -> None:
        self._place = place
        self._stage = stage
        self._seconds = seconds
        self._patience = patience
        self._ledger = stage.ledger()

    def go(self) -> dict[str, Any]:
        with self._stage.queue() as queue, ExitStack() as stack:
            position = self._install(queue)
            stack.callback(self._remove, queue)
            proxy = self._open_proxy(stack)
            crew = stack.enter_context(Crew(self._stage, self._route(proxy)))
            holder = Holder(self._stage)
            nemesis = Nemesis(self._place, crew, proxy, self._ledger, holder)
            watching = Ledger(Path(self._stage.folder), "sampler")
            with Sampler(self._stage, queue, watching):
                crew.start()
                crew.wait_until_begun()
                self._trouble(crew, nemesis, proxy is not None)
                self._drain(crew, queue)
            return dump(self._stage, queue, position)

    def _install(self, queue: Queue) -> str:
        queue.install()
        queue.configure(backoff_first=timedelta(milliseconds=100))
        queue._core.run(order(sql(self._stage.engine, "drop_effects")))
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
        queue._core.run(order(sql(self._stage.engine, "drop_effects")))
        queue.uninstall()

    def _open_proxy(self, stack: ExitStack) -> Proxy | None:
        if self._place.server is None:
            return None
        proxy = Proxy(self._place.port)
        stack.callback(proxy.close)
        return proxy

    def _route(self, proxy: Proxy | None) -> Any:
        if proxy is None:
            return lambda name: self._place.url
        return lambda name: self._place.through(proxy.open(name))

    def _trouble(self, crew: Crew, nemesis: Nemesis, proxied: bool) -> None:
        kinds = nemesis.kinds(self._place, proxied)
        faults: list[Fault] = decide(self._stage.seed, self._seconds, kinds)
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
    return (
        f"penstock chaos --engine {verdict['engine']} --seed {verdict['seed']} "
        f"--seconds {verdict['seconds']:g}"
    )
