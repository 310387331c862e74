"""The model against every store.

LANEWAY_EXHAUSTIVE=1 (`make model`) runs long and at random, and prints how to reproduce a failure.
LANEWAY_MODEL_SEEDS and LANEWAY_MODEL_STEPS say how long.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.limits import limited
from tests.model.machine import machine
from tests.model.mysql import MysqlStore
from tests.model.postgresql import PostgresqlStore
from tests.model.sqlite import SqliteStore
from tests.model.store import ModelStore
from tests.stores import GIVEN_SERVER, Databases

EXHAUSTIVE = os.environ.get("LANEWAY_EXHAUSTIVE") == "1"

SEEDS = int(os.environ.get("LANEWAY_MODEL_SEEDS", "500"))
STEPS = int(os.environ.get("LANEWAY_MODEL_STEPS", "400"))

PROFILE = settings(
    max_examples=SEEDS if EXHAUSTIVE else 30,
    stateful_step_count=STEPS if EXHAUSTIVE else 50,
    derandomize=not EXHAUSTIVE,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    # Shrinking takes minutes on a real database: only when somebody waits for it.
    phases=[Phase.generate, Phase.shrink] if EXHAUSTIVE else [Phase.generate],
)


STORES: dict[str, tuple[str, Callable[[str], ModelStore]]] = {
    "PostgreSQL 18": ("server", PostgresqlStore),
    "PostgreSQL 16": ("server16", PostgresqlStore),
    "SQLite": ("sqlite_files", SqliteStore),
    "MariaDB": ("mariadb", MysqlStore),
}
if GIVEN_SERVER:
    STORES = {"PostgreSQL": ("server", PostgresqlStore)}


# The sequences are the same on every database: SQLite plays all of them, the slower ones the first.
_FEWER = {"PostgreSQL 18": 20, "PostgreSQL 16": 8, "MariaDB": 12}
_LATER = pytest.mark.repeats("PostgreSQL and SQLite are in make test; a minute")


@pytest.mark.timeout(0 if EXHAUSTIVE else 300)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=_LATER if n == "MariaDB" else ()) for n in STORES]
)
def test_every_verb_keeps_its_promise(name: str, request: pytest.FixtureRequest) -> None:
    fixture, open_store = STORES[name]
    databases: Databases = request.getfixturevalue(fixture)
    store = open_store(databases.create_database("laneway_model"))
    try:
        examples = PROFILE.max_examples if EXHAUSTIVE else _FEWER.get(name, PROFILE.max_examples)
        profile = settings(PROFILE, max_examples=examples)
        run_state_machine_as_test(limited(machine(store)), settings=profile)
    finally:
        store.close()
