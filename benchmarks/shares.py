"""Who was served how much: the starts of a run, channel by channel."""

from collections import Counter
from collections.abc import Iterable, Sequence

from laneway import Queue


def starts(queue: Queue, messages: int, batch: int = 100) -> list[list[str]]:
    """The channels of the first so many messages to start, claim by claim; all are completed."""
    claims: list[list[str]] = []
    left = messages
    while left > 0 and (claim := queue.claim(min(batch, left))):
        claims.append([message.channel for message in claim])
        queue.complete(claim)
        left -= len(claim)
    return claims


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all have the same, 1/n if one has everything."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def longest_wait(claims: Iterable[Sequence[str]], waiting: Iterable[str]) -> int:
    """In rounds: the most visits that any channel got before one of ``waiting`` had its first.

    A visit is what a channel gets in one claim. A channel that never had one waits on to the end.
    """
    visits: Counter[str] = Counter()
    unserved, longest = set(waiting), 0
    for claim in claims:
        for channel in dict.fromkeys(claim):
            if channel in unserved:
                unserved.remove(channel)
                longest = max(longest, most(visits))
            visits[channel] += 1
    return max(longest, most(visits)) if unserved else longest


def most(visits: Counter[str]) -> int:
    return max(visits.values(), default=0)


def counts(claims: Iterable[Sequence[str]]) -> Counter[str]:
    return Counter(channel for claim in claims for channel in claim)
