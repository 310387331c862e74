"""The conformance suite on every store of tests/stores.py, with each of its clients."""

from collections.abc import Iterator

import pytest

from laneway.conformance import Case, CaseSkipped, Harness, Target, all_cases
from tests.stores import STORES, Databases

WORLDS = [(name, client) for name, store in STORES.items() for client in store.clients]


@pytest.fixture(scope="module", params=WORLDS, ids=", ".join)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    name, client = request.param
    databases: Databases = request.getfixturevalue(STORES[name].fixture)
    url = databases.create_database(f"conformance of {client}")
    with Harness(Target(url, client)) as running:
        yield running


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_conformance(harness: Harness, case: Case) -> None:
    try:
        harness.run(case)
    except CaseSkipped as skipped:
        pytest.skip(str(skipped))
