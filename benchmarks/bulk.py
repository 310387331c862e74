"""How fast many messages are published in batches."""

from collections.abc import Callable

from .bench import CHUNK, Bench
from .clients import Run, together
from .sides import SIDES


def bulk(bench: Bench, side: str, channels: int, messages: int) -> Run:
    with bench.database(installed=False) as url:
        client = SIDES[side](url)
        client.create()
        client.close()
        return together(bench, 1, _client, side, url, channels, messages)


def _client(
    wait: Callable[[], None], side: str, url: str, channels: int, messages: int
) -> tuple[int, int]:
    client = SIDES[side](url)
    for _ in range(6):
        client.publish(client.drafts(["warm"]))
    starts = range(0, messages, CHUNK)
    batches = [
        client.drafts([f"c{n % channels}" for n in range(first, first + CHUNK)]) for first in starts
    ]
    wait()
    for batch in batches:
        client.publish(batch)
    client.close()
    return len(starts) * CHUNK, len(starts)
