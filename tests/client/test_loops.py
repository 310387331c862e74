"""An AsyncQueue belongs to one event loop at a time."""

import asyncio
import threading

import pytest

from laneway import AsyncQueue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.errors import InvalidOption
from tests.place import Place, fresh_schema


def use_in_two_loops(url: str, schema: str) -> None:
    queue = AsyncQueue(url, schema=schema)

    async def use() -> None:
        await asyncio.gather(*(queue.publish(n) for n in range(3)))
        assert len(await queue.claim(3)) == 3

    async def first() -> None:
        await queue.install()
        await use()
        other = threading.Thread(target=second)
        other.start()
        await asyncio.to_thread(other.join)
        await use()
        await queue.close()

    def second() -> None:
        for verb in (queue.publish(1), queue.claim(), queue.stats()):
            with pytest.raises(InvalidOption, match="another event loop"):
                asyncio.run(verb)

    async def third() -> None:
        """It was closed in the first."""
        await use()
        await queue.close()

    asyncio.run(first())
    asyncio.run(third())


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+asyncpg"])
def test_a_second_event_loop(place: Place, scheme: str) -> None:
    use_in_two_loops(scheme + place.url.removeprefix("postgresql"), place.schema)


@pytest.mark.repeats("tested on PostgreSQL, with the same pool")
def test_a_second_event_loop_on_mariadb(mariadb: EmbeddedMariaDB) -> None:
    use_in_two_loops(mariadb.create_database("loops"), fresh_schema())
