"""What the history says about the demo, read through the public views."""

from typing import NamedTuple

import psycopg


class Evidence(NamedTuple):
    published: int
    completed: int
    dead: int
    twice: int
    expired: int
    redelivered: int
    most_at_once: int
    first_starts: list[tuple[str, int]]


_COUNTS = """
select
    count(*) filter (where outcome = 'completed'),
    count(*) filter (where dead),
    count(*) filter (where outcome = 'completed')
        - count(distinct message_id) filter (where outcome = 'completed'),
    count(*) filter (where outcome = 'expired'),
    count(*) filter (where outcome = 'completed' and attempt > 1)
from penstock.history_v1
"""

# Leases of the limited channel that were held at the moment at which one of them began.
_MOST_AT_ONCE = """
select coalesce(max((
    select count(*) from penstock.history_v1 other
    where other.channel = one.channel
        and other.claimed_at <= one.claimed_at and other.ended_at > one.claimed_at)), 0)
from penstock.history_v1 one
where one.channel = %s
"""

_FIRST_STARTS = """
select case when channel like 'quiet-%%' then 'quiet' else channel end, count(*)
from (select channel from penstock.history_v1 order by claimed_at, fence, id limit %s) first
group by 1 order by 1
"""


_HELD = "select count(*) from penstock.message_v1 where state = 'leased' and worker = %s"


def held_by(connection: "psycopg.Connection[tuple[int]]", worker: str) -> int:
    """How many messages a consumer holds at this moment."""
    row = connection.execute(_HELD, (worker,)).fetchone()
    assert row is not None
    return row[0]


def gather(url: str, published: int, limited: str, window: int) -> Evidence:
    with psycopg.connect(url) as connection:
        counts = connection.execute(_COUNTS).fetchone()
        most = connection.execute(_MOST_AT_ONCE, (limited,)).fetchone()
        starts = connection.execute(_FIRST_STARTS, (window,)).fetchall()
    assert counts is not None and most is not None
    completed, dead, twice, expired, redelivered = counts
    return Evidence(published, completed, dead, twice, expired, redelivered, most[0], starts)
