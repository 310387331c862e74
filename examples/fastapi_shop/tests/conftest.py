"""The application in this process, on the database of DATABASE_URL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from httpx import ASGITransport, AsyncClient

from shop.api import app
from shop.database import engine, queue

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def migrated() -> None:
    command.upgrade(Config(ROOT / "alembic.ini"), "head")


@pytest.fixture(scope="session")
async def client(migrated: None, anyio_backend: str) -> AsyncIterator[AsyncClient]:
    async with queue, AsyncClient(transport=ASGITransport(app), base_url="http://shop") as client:
        yield client
    await engine.dispose()
