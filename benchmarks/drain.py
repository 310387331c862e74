"""How fast a backlog is claimed and completed."""

from collections.abc import Callable

from .bench import CHUNK, Bench, tidy
from .clients import Run, together
from .sides import SIDES


def drain(bench: Bench, side: str, channels: int, messages: int, batch: int, clients: int) -> Run:
    with bench.database(installed=False) as url:
        _load(url, side, channels, messages)
        tidy(url)
        run = together(bench, clients, _client, side, url, batch)
    if run.messages != messages:
        raise RuntimeError(f"{side} drained {run.messages} of {messages} messages")
    return run


def _load(url: str, side: str, channels: int, messages: int) -> None:
    client = SIDES[side](url)
    client.create()
    for first in range(0, messages, CHUNK):
        some = range(first, min(first + CHUNK, messages))
        client.publish(client.drafts([f"c{n % channels}" for n in some]))
    client.close()


def _client(wait: Callable[[], None], side: str, url: str, batch: int) -> tuple[int, int]:
    client = SIDES[side](url)
    client.warm()
    wait()
    drained = client.drain(batch)
    client.close()
    return drained
