"""The application's engine, and the queue in the same database."""

import os

from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

from laneway import AsyncQueue

DATABASE_URL = os.environ["DATABASE_URL"]  # postgresql+asyncpg://localhost/shop

engine = create_async_engine(DATABASE_URL)
sessions = async_sessionmaker(engine, expire_on_commit=False)
queue = AsyncQueue(DATABASE_URL)
