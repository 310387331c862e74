"""MySQL and MariaDB: PyMySQL for sync code, asyncmy for asyncio."""
