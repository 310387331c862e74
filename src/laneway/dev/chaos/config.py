"""What every process of a run is told: the database, its name and its seed; names of channels."""

import json
import random
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path

from laneway import Queue
from laneway.limits import Adapt, Breaker
from laneway.plan import Plan, Row, Statement
from laneway.sqlfile import read_blocks

from .ledger import Ledger

SCHEMA = "laneway_chaos"
WORK, MANUAL = "work", "manual"
LEASE = timedelta(seconds=4)
UPKEEP = timedelta(milliseconds=500)
CALL_TIMEOUT = 3.0
"""Seconds: longer than the servers let anybody wait for a lock, shorter than a lease."""
UNLIMITED = ("unlimited-0", "unlimited-1", "unlimited-2", "unlimited-3")
ORDERED, LIMITED, RATED = "ordered", "limited", "rated"
CHANGING, PAUSABLE, FAILS = "changing", "pausable", "fails"
POISON, KEYED, DELAYED = "poison", "keyed", "delayed"
PRIORITIZED, BOUNDED = "prioritized", "bounded"
REPLACED, DEBOUNCED = "replaced", "debounced"
SHARED = ("shared-0", "shared-1")
"""Channels of messages that wait for limits which they share."""
SLOTS, PACE = "slots", "pace"
SHARED_SLOTS, SHARED_RATE, SHARED_BURST = 2, 4.0, 3
ADAPTING, ADAPTS = "adapting", Adapt(1, 3)
BREAKING, BREAKS = "breaking", Breaker(failures=0.001, window=60, minimum=1, pause=2)
"""Any failure opens it."""
PAUSABLE_KIND, ENDLESS, SPREAD = "mail", "endless", "spread"
ENDLESS_FOR = 40.0  # seconds, unless it is cancelled
LIMIT = 2
RATE, BURST = 3.0, 3
BACKLOG = 5
PART = 3
"""Dead letters in one part of a bulk operation, so that there are several."""


@dataclass(frozen=True)
class RunConfig:
    """Passed to a process as JSON. ``skew`` is by how many seconds its clock is wrong, ``pooled``
    whether the URL leads through PgBouncer, ``announced`` whether the library is told so,
    ``poison`` whether some messages harm their worker, ``by_kind`` whether workers take only some
    kinds."""

    engine: str
    url: str = field(repr=False)  # it may hold a password
    name: str
    seed: int
    folder: str
    skew: float = 0.0
    pooled: bool = False
    announced: bool = True
    poison: bool = True
    by_kind: bool = False

    @property
    def rng(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.name}")

    def ledger(self) -> Ledger:
        return Ledger(Path(self.folder), self.name)

    def queue(self, name: str = WORK) -> Queue:
        return Queue(
            self.url, name=name, schema=SCHEMA, worker=self.name, lease=LEASE, upkeep_every=UPKEEP,
            pool_size=4, pooler=self.pooled and self.announced, call_timeout=CALL_TIMEOUT,
        )  # fmt: skip

    def text(self) -> str:
        return json.dumps(asdict(self))


def added_names(n: str) -> list[str]:
    """What the handler of this message adds to its flow, the second after the first."""
    return [f"{n}+1", f"{n}+2"]


def channel(name: str, queue: str) -> str:
    """The channel's name in this queue: a name occurs in one queue only, so the checker can tell
    channels apart by name alone."""
    return f"{name}.{queue}"


def sql(engine: str, name: str) -> str:
    """A named statement of ``sql/<dialect>.sql``."""
    return _statements("mysql" if engine == "mariadb" else engine)[name]


@cache
def _statements(dialect: str) -> dict[str, str]:
    return read_blocks((files(__package__) / "sql" / f"{dialect}.sql").read_text(encoding="utf-8"))


def query(text: str) -> Plan[list[Row]]:
    """A plan of one query, for the client's runner: it works on any driver."""
    rows = yield Statement(text)
    return list(rows)


def script(text: str) -> Plan[None]:
    """A plan of one statement that returns no rows."""
    yield Statement(f"{text.strip()};", script=True)
