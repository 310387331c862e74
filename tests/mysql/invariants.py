"""What must hold in every committed snapshot of the MySQL tables, read in one transaction.

An empty list means that everything holds. Expects the history setting 'all', and a history from
which nothing was deleted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pymysql.cursors

from laneway.engines.mysql.claim.channel import PARKED, read_positions
from laneway.engines.publish import PARKED_FROM

Connection = Any  # of PyMySQL; its class is generic for the type checker only
Rows = list[dict[str, Any]]

_COLUMNS = {
    "message": "id, channel_id, priority, due, expires_at, queue, kind, `key`",
    "wake": "channel_id, priority, due, message_id, n, freed",
    "kind_queue": "queue",
    "kind_message": "channel_id, lane, priority, due, message_id",
    "kind_wake": "channel_id, lane, priority, due, message_id, n",
    "lane": "channel_id, lane, turn, places",
    "lease": "message_id, fence, channel_id, counted",
    "channel": "id, name, concurrency, paused, turn, n, leased, places",
    "stray": "message_id, fence, channel_id",
    "dead": "id, queue, channel, `key`",
    "dead_count": "queue, channel, n",
    "dead_sum": "queue, channel, n",
    "dedupe": "queue, `key`, message_id, expires_at, behind",
    "history": "message_id, fence, outcome, terminal",
}


def violations(
    connection: Connection, schema: str, published: Iterable[int] | None = None
) -> list[str]:
    """Every violated invariant as a sentence. ``published``: the ids of all committed publishes, if
    the caller knows them; then missing and unexpected messages are found too."""
    tables = _snapshot(connection, schema)
    known = None if published is None else set(published)
    return [
        *_states(tables, known),
        *_counts(tables),
        *_leases(tables),
        *_positions(tables),
        *_lanes(tables),
        *_fences(tables),
        *_keys(tables),
        *_dead_counts(tables),
    ]


def over_limit(connection: Connection, schema: str) -> list[str]:
    """Channels with more leases than their limit; correct only just after it was lowered."""
    tables = _snapshot(connection, schema)
    leases = Counter(lease["channel_id"] for lease in tables["lease"])
    return [
        f"channel {c['name']} has {leases[c['id']]} leases, its limit is {c['concurrency']}"
        for c in tables["channel"]
        if c["concurrency"] is not None and leases[c["id"]] > c["concurrency"]
    ]


def _snapshot(connection: Connection, schema: str) -> dict[str, Rows]:
    tables: dict[str, Rows] = {}
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        cursor.execute("start transaction with consistent snapshot")
        for name, columns in _COLUMNS.items():
            cursor.execute(f"select {columns} from `{schema}_{name}`")  # noqa: S608
            tables[name] = list(cursor.fetchall())
        connection.commit()
    return tables


def _states(tables: dict[str, Rows], published: set[int] | None) -> Iterator[str]:
    known: dict[int, list[str]] = defaultdict(list)
    for message in tables["message"]:
        known[message["id"]].append("message")
    for letter in tables["dead"]:
        known[letter["id"]].append("dead")
    for entry in tables["history"]:
        if entry["terminal"]:
            known[entry["message_id"]].append("finished")
    for id, where in known.items():
        if len(where) > 1:
            yield f"message {id} is in {' and '.join(where)}"
    if published is not None:
        yield from (f"message {id} is lost" for id in published - known.keys())
        yield from (f"message {id} was never published" for id in known.keys() - published)


def _counts(tables: dict[str, Rows]) -> Iterator[str]:
    leased = {lease["message_id"] for lease in tables["lease"]}
    real_n = Counter(m["channel_id"] for m in tables["message"] if m["id"] not in leased)
    real_leased = Counter(x["channel_id"] for x in tables["lease"] if x["counted"])
    real_leased.update(s["channel_id"] for s in tables["stray"])
    n: Counter[bytes] = Counter()
    charged: Counter[bytes] = Counter()
    for channel in tables["channel"]:
        n[channel["id"]] += channel["n"]
        charged[channel["id"]] += channel["leased"]
    for wake in tables["wake"]:
        n[wake["channel_id"]] += wake["n"]
        charged[wake["channel_id"]] -= wake["freed"]
    for wake in tables["kind_wake"]:
        n[wake["channel_id"]] += wake["n"]
    for id in {*n, *real_n}:
        if n[id] != real_n[id]:
            yield f"channel {id.hex()} counts {n[id]} waiting, there are {real_n[id]}"
    for id in {*charged, *real_leased}:
        if charged[id] != real_leased[id]:
            yield f"channel {id.hex()} counts {charged[id]} leased, there are {real_leased[id]}"


def _leases(tables: dict[str, Rows]) -> Iterator[str]:
    messages = {message["id"]: message for message in tables["message"]}
    limited = {c["id"] for c in tables["channel"] if c["concurrency"] is not None}
    strays = {(s["message_id"], s["fence"]) for s in tables["stray"]}
    for lease in tables["lease"]:
        id = lease["message_id"]
        if id not in messages:
            yield f"lease of message {id}, which does not exist"
        elif messages[id]["channel_id"] != lease["channel_id"]:
            yield f"lease of message {id} in a channel that is not its own"
        stray = (id, lease["fence"]) in strays
        if lease["channel_id"] in limited and not lease["counted"] and not stray:
            yield f"lease of message {id} in a limited channel is not charged"
        if lease["counted"] and stray:
            yield f"stray of message {id} is charged twice"


def _positions(tables: dict[str, Rows]) -> Iterator[str]:
    channels = {channel["id"]: channel for channel in tables["channel"]}
    leased = {lease["message_id"] for lease in tables["lease"]}
    wakes = defaultdict(list)
    for wake in (*tables["wake"], *tables["kind_wake"]):
        wakes[wake["channel_id"]].append(wake)
    for m in tables["message"]:
        if m["id"] in leased or m["expires_at"] is not None:
            continue
        position = (m["due"], m["id"])
        channel = channels.get(m["channel_id"])
        kept = read_positions(channel["places"]) if channel else {}
        seen = m["priority"] in kept and kept[m["priority"]] < position
        if not seen and not _woken(m, wakes[m["channel_id"]]):
            yield f"message {m['id']} is before every position"
    for channel in tables["channel"]:
        yield from _schedule(channel, bool(wakes[channel["id"]]))


def _woken(m: dict[str, Any], wakes: Iterable[dict[str, Any]]) -> bool:
    position, lane = (m["due"], m["id"]), b"=" + m["kind"]
    return any(
        w["n"] > 0
        and w["priority"] == m["priority"]
        and w.get("lane", lane) == lane
        and (w["due"], w["message_id"]) <= position
        for w in wakes
    )


def _lanes(tables: dict[str, Rows]) -> Iterator[str]:
    """What waits in queues that are claimed by kind is found so, or is to be put into lanes."""
    queues = {row["queue"] for row in tables["kind_queue"]}
    channels = {channel["id"]: channel for channel in tables["channel"]}
    leased = {lease["message_id"] for lease in tables["lease"]}
    sorted_ones = {tuple(row.values()) for row in tables["kind_message"]}
    places = {(r["channel_id"], r["lane"]): read_positions(r["places"]) for r in tables["lane"]}
    wakes, kind_wakes = defaultdict(list), defaultdict(list)
    for wake in tables["wake"]:
        wakes[wake["channel_id"]].append(wake)
    for wake in tables["kind_wake"]:
        kind_wakes[wake["channel_id"]].append(wake)
    for m in tables["message"]:
        if m["id"] in leased or m["expires_at"] is not None or m["queue"] not in queues:
            continue
        id, priority, position = m["channel_id"], m["priority"], (m["due"], m["id"])
        lane = b"=" + m["kind"]
        known, unsorted = places.get((id, lane), {}), places.get((id, b"-"), {})
        found = (id, lane, priority, *position) in sorted_ones and (
            (priority in known and known[priority] < position) or _woken(m, kind_wakes[id])
        )
        later = priority in unsorted and unsorted[priority] < position
        if not found and not later and not _woken(m, wakes[id]):
            yield f"message {m['id']} is not found by its kind"
    places_of = {m["id"]: (m["priority"], m["due"]) for m in tables["message"]}
    for row in tables["kind_message"]:
        place = row["priority"], row["due"]
        if row["message_id"] in leased and places_of.get(row["message_id"]) == place:
            yield f"message {row['message_id']} is leased and still found by its kind"
    for row in tables["lane"]:
        if not row["places"]:
            yield f"lane {row['lane']} is empty"
        channel = channels.get(row["channel_id"])
        if channel is None:
            yield f"lane {row['lane']} of no channel"
        elif row["turn"] == PARKED and channel["concurrency"] != 1:
            limit = channel["concurrency"]
            room = limit is None or channel["leased"] < limit
            if room and not channel["paused"] and not wakes[channel["id"]]:
                yield f"lane {row['lane']} of channel {channel['name']} is parked in vain"


def _schedule(channel: dict[str, Any], has_wakes: bool) -> Iterator[str]:
    if channel["turn"] == PARKED and not channel["places"] and channel["n"] > 0:
        return  # what is left has expired: any other message needs a position or a wake, see above
    if bool(channel["places"]) != (channel["turn"] is not None):
        yield f"channel {channel['name']} has places {channel['places']} and turn {channel['turn']}"
    limit = channel["concurrency"]
    room = limit is None or channel["leased"] < limit
    if channel["turn"] == PARKED and not channel["paused"] and room and not has_wakes:
        yield f"channel {channel['name']} is parked with work and room"


def _fences(tables: dict[str, Rows]) -> Iterator[str]:
    ended: dict[int, list[int]] = defaultdict(list)
    for entry in tables["history"]:
        if entry["fence"] is not None and entry["outcome"] != b"stale":
            ended[entry["message_id"]].append(entry["fence"])
    for id, fences in ended.items():
        if len(set(fences)) < len(fences):
            yield f"a fence of message {id} ended twice"
    for lease in tables["lease"]:
        if max(ended[lease["message_id"]], default=0) >= lease["fence"]:
            yield f"fence {lease['fence']} of message {lease['message_id']} did not rise"


def _keys(tables: dict[str, Rows]) -> Iterator[str]:
    taken = {(d["queue"], d["key"]): d for d in tables["dedupe"]}
    alive = {m["id"] for m in (*tables["message"], *tables["dead"])}
    for m in (*tables["message"], *tables["dead"]):
        if m["key"] is not None:
            held = taken.get((m["queue"], m["key"]))
            if held is None or m["id"] not in (held["message_id"], held["behind"]):
                yield f"key {m['key']} of message {m['id']} is not taken"
    leased = {lease["message_id"] for lease in tables["lease"]}
    running = Counter((m["queue"], m["key"]) for m in tables["message"] if m["id"] in leased)
    yield from (f"{key} runs {n} times" for key, n in running.items() if key[1] and n > 1)
    behind = {held["message_id"] for held in tables["dedupe"] if held["behind"] is not None}
    for m in tables["message"]:
        if m.get("due", 0) >= PARKED_FROM and m["id"] not in behind:
            yield f"message {m['id']} waits behind nothing"
    for held in tables["dedupe"]:
        if held["expires_at"] is None and held["message_id"] not in alive:
            yield f"key {held['key']} is held by nothing"
        if held["behind"] is not None and held["behind"] not in alive:
            yield f"message {held['message_id']} waits behind one that does not exist"


def _dead_counts(tables: dict[str, Rows]) -> Iterator[str]:
    sums: Counter[tuple[bytes, bytes]] = Counter()
    for count in (*tables["dead_count"], *tables["dead_sum"]):
        sums[count["queue"], count["channel"]] += count["n"]
    for letter in tables["dead"]:
        sums[letter["queue"], letter["channel"]] -= 1
    yield from (
        f"dead letters of {channel} are miscounted by {n}" for channel, n in sums.items() if n
    )
