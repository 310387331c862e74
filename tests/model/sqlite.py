"""The model's store on SQLite."""

import math
import sqlite3
from collections.abc import Iterable
from datetime import datetime

from laneway import Queue
from laneway.drivers.sqlite.url import read_url
from laneway.engines.sqlite.base import render

TABLES = [
    *("flow", "flow_node", "flow_edge", "flow_held"),
    "message",
    "waiting",
    "claim",
    "lease",
    "channel",
    "dedupe",
    "dead",
    "dead_count",
    "history",
    "done",
    "shared_limit",
    "limit_lease",
    "limit_lane",
    "limit_wait",
    "limit_queue",
    "limit_clock",
    "listener",
    "mail",
    "schedule",
    "subscription",
    "lane",
    "kind_waiting",
    "kind_queue",
]

VIOLATIONS = """
with place as (
    select id, 'message' as place from "laneway_message"
    union all select id, 'dead' from "laneway_dead"
    union all select message_id, 'finished' from "laneway_history" where terminal
),
channel as (
    select c.*,
        (select count(*) from "laneway_waiting" w where w.channel_id = c.id) as has_waiting,
        (select count(*) from "laneway_lease" l where l.channel_id = c.id) as has_leased,
        (select min(w.due) from "laneway_waiting" w where w.channel_id = c.id) as first_due
    from "laneway_channel" c
),
lane as (
    select l.*, c.name, c.concurrency, c.leased, c.paused, (
        select count(*) from "laneway_kind_waiting" k
        where k.channel_id = l.channel_id and k.kind = l.kind) as has_waiting
    from "laneway_lane" l join "laneway_channel" c on c.id = l.channel_id
)
select 'message ' || id || ' is in ' || group_concat(place, ' and ')
from place group by id having count(*) > 1
union all
select 'message ' || m.id || ' waits ' || (w.message_id is not null) || ' times and is leased '
    || (select count(*) from "laneway_lease" l where l.message_id = m.id) || ' times'
from "laneway_message" m left join "laneway_waiting" w on w.channel_id = m.channel_id
    and w.priority = m.priority and w.due = m.due and w.message_id = m.id
where (w.message_id is not null)
    + (select count(*) from "laneway_lease" l where l.message_id = m.id) <> 1
union all
select 'waiting entry of no message ' || w.message_id from "laneway_waiting" w
where not exists (select 1 from "laneway_message" m where m.id = w.message_id
    and m.expires_at is w.expires_at)
union all
select 'lease of no message or claim ' || l.message_id from "laneway_lease" l
where not exists (select 1 from "laneway_message" m where m.id = l.message_id)
    or not exists (select 1 from "laneway_claim" k where k.fence = l.fence and k.until <= l.until)
union all
select 'channel ' || name || ' says ' || waiting || ' wait, but ' || has_waiting || ' do'
from channel where waiting <> has_waiting
union all
select 'channel ' || name || ' says ' || leased || ' are leased, but ' || has_leased || ' are'
from channel where leased <> has_leased
union all
select 'channel ' || name || ' has too many leases' from channel
where leased > concurrency and turn is not null
union all
select 'channel ' || name || ' misses a band' from channel c
where exists (select 1 from "laneway_waiting" w where w.channel_id = c.id
    and not (c.bands >> min(w.priority, 61)) & 1 and w.expires_at is null)
union all
select 'channel ' || name || ' is due later than its first message' from channel c
where exists (select 1 from "laneway_waiting" w where w.channel_id = c.id
    and w.expires_at is null and (c.next_due is null or c.next_due > w.due))
union all
select 'channel ' || name || ' is in two places' from channel
where turn is not null and wake_at is not null
union all
select 'channel ' || name || ' is lost: it may start, and neither has a turn nor wakes' from channel
where turn is null and wake_at is null and next_due is not null and not paused
    and waiting > 0 and (concurrency is null or leased < concurrency)
union all
select 'channel ' || name || ' has a turn and may not start' from channel
where turn is not null and (paused or waiting = 0 or leased >= concurrency)
union all
select 'two channels have the turn ' || turn from channel
where turn is not null group by turn having count(*) > 1
union all
select 'turn ' || max(turn) || ' was not given out yet' from channel
having max(turn) > (select turn from "laneway_state")
union all
select 'message ' || w.message_id || ' is not found by its kind' from "laneway_waiting" w
join "laneway_message" m on m.id = w.message_id join "laneway_channel" c on c.id = w.channel_id
join "laneway_kind_queue" q on q.queue = c.queue
where q.ready and not exists (select 1 from "laneway_kind_waiting" k
    where k.channel_id = w.channel_id and k.kind = m.kind and k.priority = w.priority
        and k.due = w.due and k.message_id = w.message_id and k.expires_at is w.expires_at)
union all
select 'message ' || k.message_id || ' is found by its kind and does not wait'
from "laneway_kind_waiting" k
where not exists (select 1 from "laneway_waiting" w where w.channel_id = k.channel_id
    and w.priority = k.priority and w.due = k.due and w.message_id = k.message_id)
union all
select 'lane ' || name || '/' || kind || ' says ' || waiting || ' wait, not ' || has_waiting
from lane where waiting <> has_waiting or waiting = 0
union all
select 'no lane for message ' || k.message_id from "laneway_kind_waiting" k
join "laneway_channel" c on c.id = k.channel_id join "laneway_kind_queue" q on q.queue = c.queue
where q.ready and not exists (
    select 1 from "laneway_lane" l where l.channel_id = k.channel_id and l.kind = k.kind)
union all
select 'lane ' || name || '/' || kind || ' misses a band, or a message is due earlier' from lane l
where exists (select 1 from "laneway_kind_waiting" k where k.channel_id = l.channel_id
    and k.kind = l.kind and k.expires_at is null
    and (not (l.bands >> min(k.priority, 61)) & 1 or l.next_due is null or l.next_due > k.due))
union all
select 'lane ' || name || '/' || kind || ' is in two places' from lane
where turn is not null and wake_at is not null
union all
select 'lane ' || name || '/' || kind || ' is lost: it may start, and neither has a turn nor wakes'
from lane where turn is null and wake_at is null and next_due is not null and not paused
    and concurrency is not 1 and (concurrency is null or leased < concurrency)
union all
select 'channel ' || name || ' is lost: no lane of it has a turn or wakes' from lane
where concurrency = 1 and leased = 0 and not paused and next_due is not null
group by channel_id having count(turn) = 0 and count(wake_at) = 0
union all
select 'lane ' || name || '/' || kind || ' has a turn and may not start' from lane
where turn is not null and (paused or leased >= concurrency)
union all
select 'two lanes have the turn ' || turn from lane
where turn is not null group by queue, kind, turn having count(*) > 1
union all
select 'turn ' || max(turn) || ' of a lane was not given out yet' from lane
having max(turn) > (select turn from "laneway_state")
union all
select 'dead letters of ' || queue || '/' || channel || ' are counted as ' || n
from "laneway_dead_count" k where n <> (
    select count(*) from "laneway_dead" d where d.queue = k.queue and d.channel = k.channel)
union all
select 'key ' || k.key || ' of no message' from "laneway_dedupe" k
where k.expires_at is null
    and not exists (select 1 from "laneway_message" m where m.id = k.message_id and m.key = k.key)
    and not exists (select 1 from "laneway_dead" d where d.id = k.message_id and d.key = k.key)
union all
select 'message ' || m.id || ' has lost its key' from "laneway_message" m
where m.key is not null and not exists (
    select 1 from "laneway_dedupe" k where m.id in (k.message_id, k.behind) and k.key = m.key)
union all
select 'message ' || k.message_id || ' waits behind one that does not exist' from "laneway_dedupe" k
where k.behind is not null and not exists (select 1 from "laneway_message" m where m.id = k.behind)
union all
select 'message ' || m.id || ' waits behind nothing' from "laneway_message" m
where m.due >= 95617584000000000 and not exists (
    select 1 from "laneway_dedupe" k where k.message_id = m.id and k.behind is not null)
union all
select 'the key ' || m.key || ' runs ' || count(*) || ' times' from "laneway_message" m
join "laneway_channel" c on c.id = m.channel_id join "laneway_lease" l on l.message_id = m.id
where m.key is not null group by c.queue, m.key having count(*) > 1
"""


class SqliteTransaction:
    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path)

    def commit(self) -> None:
        self.connection.commit()

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()


class SqliteStore:
    open_transactions = False
    in_order_within = math.inf

    def __init__(self, url: str) -> None:
        self.url, self.schema = url, "laneway model"
        self.first = Queue(url, schema=self.schema, pool_size=4)
        self.first.install()
        self._path = read_url(url).path
        self.eyes = sqlite3.connect(self._path, isolation_level=None)
        self._violations = render(VIOLATIONS, self.schema)

    def reset(self) -> None:
        self.eyes.execute(
            render('update "laneway_channel" set waiting = 0, leased = 0', self.schema)
        )
        self.eyes.execute(render('update "laneway_state" set by_kind = 0, flows = 0', self.schema))
        for table in TABLES:
            self.eyes.execute(render(f'delete from "laneway_{table}"', self.schema))  # noqa: S608

    def begin(self) -> SqliteTransaction:
        return SqliteTransaction(self._path)

    def unread(self, now: datetime) -> int:
        """A claim sees all there is."""
        return 0

    def violations(self, published: Iterable[int]) -> list[str]:
        return [row[0] for row in self.eyes.execute(self._violations)] + self._lost(published)

    def _lost(self, published: Iterable[int]) -> list[str]:
        """Messages that are nowhere."""
        text = """select id from "laneway_message" union select id from "laneway_dead"
            union select message_id from "laneway_history" where terminal"""
        known = {row[0] for row in self.eyes.execute(render(text, self.schema))}
        return [f"message {id} is lost" for id in published if id not in known]

    def close(self) -> None:
        self.first.close()
        self.eyes.close()
