"""A new database of each kind, for what a worker must do on all of them."""

from itertools import count

import pytest

from tests.stores import Databases

_numbers = count(1)


_LATER = pytest.mark.repeats(
    "the worker's code is the same, and the verbs are in the conformance suite"
)


@pytest.fixture(
    params=[
        "server",
        pytest.param("mariadb", marks=_LATER),
        pytest.param("sqlite_files", marks=_LATER),
    ]
)
def database_url(request: pytest.FixtureRequest) -> str:
    databases: Databases = request.getfixturevalue(request.param)
    return databases.create_database(f"laneway_worker_{next(_numbers)}")
