"""How a batch is divided: deficit round robin, whole rounds over all channels first."""

from collections.abc import Sequence
from math import floor
from typing import Protocol

QUANTUM = 10


class Sharer(Protocol):
    """A channel at the table."""

    first: float
    """Its part of the first round: what a visit that was cut short left, or a portion."""
    portion: float
    """Its part of each further round."""
    quota: int
    """The most that it may take now."""
    base: int
    upto: int
    taken: int


def rounds_for(supplies: Sequence[int], limit: int) -> int:
    """With few busy channels one quantum each does not fill the batch: several rounds at once."""
    rounds, total = 1, sum(supplies)
    reach = sum(min(supply, QUANTUM) for supply in supplies)
    while reach < limit and reach < total:
        rounds *= 2
        reach = sum(min(supply, rounds * QUANTUM) for supply in supplies)
    return rounds


def share(sharers: Sequence[Sharer], limit: int, rounds: int) -> int:
    """Sets what each takes; answers how many whole rounds went in. One more is begun, in order."""
    whole = _whole_rounds(sharers, limit, rounds)
    for sharer in sharers:
        sharer.base = _upto(sharer, whole)
        sharer.upto = _upto(sharer, whole + 1)
    left = limit - sum(sharer.base for sharer in sharers)
    for sharer in sharers:
        more = max(0, min(sharer.upto - sharer.base, left))
        sharer.taken = sharer.base + more
        left -= more
    return whole


def _whole_rounds(sharers: Sequence[Sharer], limit: int, rounds: int) -> int:
    low, high = 0, rounds
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_upto(sharer, middle) for sharer in sharers) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _upto(sharer: Sharer, rounds: int) -> int:
    if rounds <= 0:
        return 0
    return min(sharer.quota, floor(sharer.first + (rounds - 1) * sharer.portion))
