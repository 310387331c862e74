"""What every process of a run knows: where, under which name, and by which dice."""

import json
import random
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path

from penstock import Queue
from penstock.plan import Plan, Row, Statement

from .ledger import Ledger

SCHEMA = "penstock_chaos"
WORK, HAND = "work", "hand"
LEASE = timedelta(seconds=4)
UPKEEP = timedelta(milliseconds=500)
FREE = ("free-0", "free-1", "free-2", "free-3")
LINE, TIGHT, RATED, SWING, GATE, FAILS = "line", "tight", "rated", "swing", "gate", "fails"
POISON, KEYED, LATER = "poison", "keyed", "later"
RANKED, FULL = "ranked", "full"
TIGHT_LIMIT = 2
RATE, BURST = 3.0, 3
BACKLOG = 5


@dataclass(frozen=True)
class Stage:
    """Handed to a process as JSON. ``skew`` is by how many seconds its clock is wrong, ``pooled``
    whether the URL leads through PgBouncer, ``poison`` whether messages hurt whoever has them."""

    engine: str
    url: str = field(repr=False)  # it may hold a password
    name: str
    seed: int
    folder: str
    skew: float = 0.0
    pooled: bool = False
    poison: bool = True

    @property
    def dice(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.name}")

    def ledger(self) -> Ledger:
        return Ledger(Path(self.folder), self.name)

    def queue(self, name: str = WORK) -> Queue:
        return Queue(
            self.url, queue=name, schema=SCHEMA, worker=self.name, lease=LEASE, upkeep_every=UPKEEP,
            pool_size=4, pooler=self.pooled,
        )  # fmt: skip

    def text(self) -> str:
        return json.dumps(asdict(self))


def channel(name: str, queue: str) -> str:
    """Channels of two queues are told apart by their names too."""
    return f"{name}.{queue}"


@cache
def sql(engine: str, name: str) -> str:
    folder = "mysql" if engine == "mariadb" else engine
    text = (files(__package__) / "sql" / folder / f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def ask(text: str) -> Plan[list[Row]]:
    """A plan of one question: the client's runner knows how to say it on any driver."""
    rows = yield Statement(text)
    return list(rows)


def order(text: str) -> Plan[None]:
    """A plan of one statement that answers nothing."""
    yield Statement(f"{text.strip()};", script=True)
