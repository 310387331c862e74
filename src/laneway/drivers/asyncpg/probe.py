"""The probe of a new connection, for asyncpg."""

from typing import Any

from laneway.drivers.session import PROBE


async def probe(connection: Any) -> tuple[int, str]:
    """The server process behind the connection, and its default isolation. By COPY, which is one
    step: a query of asyncpg's is two, and a pooler may send each to another server process."""
    parts: list[bytes] = []

    async def collect(data: bytes) -> None:
        parts.append(data)

    await connection.copy_from_query(PROBE, output=collect)
    process, isolation = b"".join(parts).decode().strip().split("\t")
    return int(process), isolation
