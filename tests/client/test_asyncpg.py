"""All tests of the async client once more, on asyncpg."""

import pytest

from tests.client.test_async_client import *  # noqa: F403
from tests.place import Place, fresh_schema


@pytest.fixture
def place(database: str) -> Place:
    return Place(database.replace("postgresql://", "postgresql+asyncpg://"), fresh_schema())
