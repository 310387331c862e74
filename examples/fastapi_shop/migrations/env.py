"""How Alembic reaches the database: the application's URL, by asyncpg."""

import asyncio

from alembic import context
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from laneway.integrations import alembic as laneway
from shop.database import DATABASE_URL
from shop.models import Base


def run(connection: Connection | None = None) -> None:
    context.configure(
        connection=connection,
        url=DATABASE_URL,
        target_metadata=Base.metadata,
        include_name=laneway.include_name,  # autogenerate leaves Laneway's tables alone
    )
    with context.begin_transaction():
        context.run_migrations()


async def online() -> None:
    engine = create_async_engine(DATABASE_URL, poolclass=pool.NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


if context.is_offline_mode():
    run()
else:
    asyncio.run(online())
