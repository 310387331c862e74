"""One claim for several callers: to each its share."""

from collections.abc import Sequence
from datetime import timedelta

from penstock.contract import Taken
from penstock.model import Answer


def distribute(taken: Taken, limits: Sequence[int]) -> list[Taken]:
    """First come, first served, up to each one's limit.

    Who gets nothing while others got something is told to look again at once: only a claim of its
    own can say whether the rest is empty or blocked.
    """
    if len(limits) == 1:
        return [taken]
    shares, start = [], 0
    for limit in limits:
        rows = taken.rows[start : start + limit]
        start += limit
        if taken.rows and not rows:
            shares.append(Taken((), Answer.BUSY, timedelta(0), None, None))
        else:
            shares.append(taken._replace(rows=rows))
    return shares
