"""The conformance suite on PostgreSQL 16 and 18, sync and async, psycopg and asyncpg."""

from collections.abc import Iterator
from typing import get_args

import pytest

pytest.register_assert_rewrite("penstock.conformance")

from penstock.conformance import Case, CaseSkipped, Harness, Target, all_cases  # noqa: E402
from penstock.conformance.runner import Client  # noqa: E402
from penstock.embedded import EmbeddedPostgres  # noqa: E402

WORLDS = [(server, client) for server in ("server", "server16") for client in get_args(Client)]


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: " ".join(world))
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    name, client = request.param
    server: EmbeddedPostgres = request.getfixturevalue(name)
    url = server.create_database(f"conformance of {client}")
    with Harness(Target(url, client)) as running:
        yield running


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_conformance(harness: Harness, case: Case) -> None:
    try:
        harness.run(case)
    except CaseSkipped as skipped:
        pytest.skip(str(skipped))
