"""How fast many messages are published in batches."""

from collections.abc import Callable

from .bench import Bench
from .clients import Run, together
from .sides import SIDES


def bulk(bench: Bench, side: str, channels: int, messages: int, batch: int) -> Run:
    with bench.database(installed=False) as url:
        client = SIDES[side](url)
        client.create()
        client.close()
        return together(bench, 1, _client, side, url, channels, messages, batch)


def _client(
    wait: Callable[[], None], side: str, url: str, channels: int, messages: int, batch: int
) -> tuple[int, int]:
    client = SIDES[side](url)
    for _ in range(6):
        client.publish(client.drafts(["warm"]))
    starts = range(0, messages, batch)
    batches = [
        client.drafts([f"c{n % channels}" for n in range(first, first + batch)]) for first in starts
    ]
    wait()
    for drafts in batches:
        client.publish(drafts)
    client.close()
    return len(starts) * batch, len(starts)
