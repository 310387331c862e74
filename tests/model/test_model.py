"""The model against PostgreSQL 16 and 18.

PENSTOCK_EXHAUSTIVE=1 (`make model`) runs long and at random, and prints how to reproduce a failure.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.embedded import EmbeddedPostgres
from tests.model.machine import Engine, machine

EXHAUSTIVE = os.environ.get("PENSTOCK_EXHAUSTIVE") == "1"

PROFILE = settings(
    max_examples=500 if EXHAUSTIVE else 30,
    stateful_step_count=400 if EXHAUSTIVE else 50,
    derandomize=not EXHAUSTIVE,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    # Shrinking takes minutes on a real database: only when somebody waits for it.
    phases=[Phase.generate, Phase.shrink] if EXHAUSTIVE else [Phase.generate],
)


@pytest.mark.timeout(0 if EXHAUSTIVE else 300)
@pytest.mark.parametrize("name", ["server", "server16"])
def test_every_verb_keeps_its_promise(name: str, request: pytest.FixtureRequest) -> None:
    server: EmbeddedPostgres = request.getfixturevalue(name)
    engine = Engine(server.create_database("penstock_model"))
    try:
        run_state_machine_as_test(machine(engine), settings=PROFILE)
    finally:
        engine.close()
