"""PostgreSQL by asyncpg, for asyncio only."""
