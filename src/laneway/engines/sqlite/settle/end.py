"""How leases and messages end: what the settling verbs and upkeep share, and what that releases in
flows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from laneway.engines.flows import (
    MOST_DECIDED,
    FlowChanges,
    FlowEnds,
    FlowNodeRow,
    StagedRow,
    UndecidedRow,
)
from laneway.engines.minutes import MINUTE, MinuteFigures
from laneway.engines.sqlite.base import SqliteSql, WriteState, listed
from laneway.engines.sqlite.channels import CountChanges, SqliteChannelRows, SqliteLanes
from laneway.engines.sqlite.events import SqliteEventOutbox
from laneway.plan import Plan, as_dict


class SqliteNodeEnds(FlowEnds):
    """Nodes that end, and the messages that this releases. One writer at a time: nothing is
    locked."""

    def __init__(
        self, sql: SqliteSql, rows: SqliteChannelRows, lanes: SqliteLanes, outbox: SqliteEventOutbox
    ) -> None:
        self._sql = sql
        self._rows = rows
        self._lanes = lanes
        self._outbox = outbox

    def nodes_ended(
        self, ids: Sequence[int], fences: Mapping[int, int], outcome: str, state: WriteState
    ) -> Plan[None]:
        """Called by everything that ends messages, after it has done so."""
        if state.has_flows and ids:
            yield from self._end_nodes(ids, fences, outcome, state)

    def node_rows(self, ids: Iterable[int]) -> Plan[dict[int, FlowNodeRow]]:
        rows = yield self._sql.statement("node_rows", listed(ids))
        return {row[0]: FlowNodeRow(*row) for row in rows}

    def _child_edges(
        self, ended: Sequence[UndecidedRow], changes: FlowChanges
    ) -> Plan[tuple[Sequence[Sequence[int]], Mapping[int, int]]]:
        limit = max(changes.room, 0)
        if any(row.start for row in ended):
            starts = listed((row.parent, row.start) for row in ended)
            rows = yield self._sql.statement("child_edges_from", starts, limit + 1)
        else:
            parents = listed(row.parent for row in ended)
            rows = yield self._sql.statement("child_edges", parents, limit + 1)
        if len(rows) <= limit:
            return rows, {}
        # They come in the order of the parents, and of each parent's children.
        stopped, first, *_ = rows[limit]
        number = next(n for n, row in enumerate(ended) if row.parent == stopped)
        left = {row.parent: row.start for row in ended[number:]}
        return rows[:limit], left | {stopped: first}

    def _undecided_rows(self, parents: Sequence[int]) -> Plan[list[UndecidedRow]]:
        rows = yield self._sql.statement("undecided_of", listed(parents))
        return [UndecidedRow(*row) for row in rows]

    def decide_left(self, state: WriteState) -> Plan[int]:
        """Part of upkeep: what the ends of nodes have left, a bounded number of children."""
        rows = yield self._sql.statement("undecided_rows", MOST_DECIDED)
        left = {row.parent: row for row in map(UndecidedRow._make, rows)}
        if left:
            yield from self._go_on(list(left.values()), state)
        return len(left)

    def _staged_rows(self, adders: Mapping[int, FlowNodeRow]) -> Plan[list[StagedRow]]:
        rows = yield self._sql.statement("staged_rows", listed(adders))
        return [
            StagedRow(id, flow_id, adder, fence, json.loads(parents), when, bool(cancelled))
            for id, flow_id, adder, fence, parents, when, cancelled in rows
        ]

    def _add_staged(
        self, staged: Sequence[StagedRow], dropped: Sequence[int], changes: FlowChanges
    ) -> Plan[None]:
        if dropped:
            yield self._sql.statement("delete_held", listed(dropped))
        if staged:
            ids = listed(row.id for row in staged)
            yield self._sql.statement("add_staged_nodes", ids)
            yield self._sql.statement("add_staged_edges", ids)
            yield self._sql.statement("unstage_nodes", ids)

    def write_flow_changes(self, changes: FlowChanges, state: WriteState) -> Plan[None]:
        alone = []
        for values, ids in _nodes_by_values(changes, state.now).items():
            if len(ids) < _TOGETHER:
                alone += [(id, *values) for id in ids]
            else:
                yield self._sql.statement("write_nodes", listed(ids), *values)
        if alone:
            yield self._sql.many("write_node", alone)
        yield self._sql.many("count_flow", changes.count_rows())
        if changes.decided:
            yield self._sql.many("delete_undecided", changes.decided)
        if changes.undecided:
            yield self._sql.many("set_undecided", list(changes.undecided.values()))
        if changes.dropped:
            yield self._sql.statement("delete_held", listed(changes.dropped))
        if changes.released:
            yield from self.release_nodes(changes.released)

    def release_nodes(self, ids: Sequence[int]) -> Plan[None]:
        """Publishes them; no limit refuses them, because whoever ended their parents must not fail
        for it."""
        text = listed(ids)
        names = yield self._sql.statement("held_channels", text)
        state = yield from self._sql.begin_write(turns=len(names))
        yield from self._rows.channels([(queue, channel) for queue, channel in names], state.now)
        kinds = yield self._sql.statement("held_kinds", text)
        rows = yield self._sql.statement("release_nodes", text, state.now)
        yield self._sql.statement("add_waiting_again", text)
        yield from self._lanes.now_waiting((row[0] for row in rows), state)
        yield self._sql.statement("delete_held", text)
        changes = CountChanges()
        for _, channel_id, priority, due in rows:
            changes.add(channel_id, more=1, priority=priority, due=due)
        yield from self._rows.update_counts(changes, state)
        yield from self._outbox.add_events("published", [row[0] for row in rows], state)
        # Counted here: upkeep counts messages by their ids, and theirs are old.
        minute = state.now - state.now % MINUTE
        published = [(minute, *row) for row in kinds]
        figures = MinuteFigures()
        figures.add_published(published)
        yield self._sql.many("add_minute", figures.rows())
        yield self._sql.many("add_kind_count", [row[1:] for row in published])

    def revive_nodes(self, ids: Sequence[int], state: WriteState) -> Plan[None]:
        """Dead letters that were redriven."""
        if not state.has_flows:
            return
        changes = FlowChanges()
        for node in (yield from self.node_rows(ids)).values():
            changes.turn(node, "live")
        if changes.nodes:
            yield from self.write_flow_changes(changes, state)

    def forget_flows(self, state: WriteState, limit: int) -> Plan[int]:
        """Part of upkeep: which have ended, and which are no longer kept."""
        yield self._sql.statement("end_flows", state.now, limit)
        nodes = listed(
            row[0] for row in (yield self._sql.statement("expired_flow_nodes", state.now, limit))
        )
        yield self._sql.statement("delete_flow_edges", nodes)
        yield self._sql.statement("forget_undecided", nodes)
        yield self._sql.statement("delete_flow_nodes", nodes)
        gone = yield self._sql.statement("delete_flows", state.now, limit)
        if gone:
            yield self._sql.statement("count_flows", -len(gone))
        return len(json.loads(nodes))


_TOGETHER = 4
"""As many nodes that get the same values are written by one statement."""


def _nodes_by_values(changes: FlowChanges, now: int) -> dict[tuple[Any, ...], list[int]]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for id, row in changes.nodes.items():
        ended = now if id in changes.ended else None
        groups.setdefault((row.pending, row.missed, row.state, row.died, ended), []).append(id)
    return groups


class SqliteRequeue(NamedTuple):
    """A message that goes back to its channel. ``counts``: whether the attempt counts."""

    id: int
    due: int
    counts: bool
    spent: int
    keep: bool = True
    state: bytes | None = None
    state_type: str | None = None


class SqliteEndedLease(NamedTuple):
    """A lease that was ended, with what decides whether its message is retried."""

    id: int
    fence: int
    channel_id: int
    priority: int
    due: int
    spent: int
    max_attempts: int


class SqliteDeadRow(NamedTuple):
    """A message that becomes a dead letter."""

    id: int
    reason: str
    error_type: str | None
    error: str | None
    traceback: str | None = None


class SqliteEndedKey(NamedTuple):
    """A publish key whose message ended; it stays in use for ``window``. ``owner``: the message
    that has it, which may wait ``behind`` a running one, until ``behind_due``."""

    queue: str
    key: str
    message_id: int
    window: int | None
    owner: int | None = None
    behind: int | None = None
    behind_due: int | None = None


Released = Sequence[int]
"""A lease that was just ended, by its holder or by upkeep: message id, fence, channel id."""


class SqliteSettleEnd:
    """How leases and messages end: what the settling verbs and upkeep share."""

    def __init__(
        self,
        sql: SqliteSql,
        lanes: SqliteLanes,
        outbox: SqliteEventOutbox,
        rows: SqliteChannelRows,
        nodes: SqliteNodeEnds,
    ) -> None:
        self._sql = sql
        self._lanes = lanes
        self._outbox = outbox
        self._rows = rows
        self._nodes = nodes

    def release(self, leases: Iterable[Sequence[Any]]) -> Plan[list[Released]]:
        """Deletes the leases that are held under these fences; returns them. Others are lost."""
        released: list[Released] = []
        for fence, ids in by_fence(leases).items():
            rows = yield self._sql.statement("held_leases", fence, listed(ids))
            if rows:
                yield self._sql.statement("delete_leases", fence, listed(ids))
                released += rows
        return released

    def charge(self, runs: Iterable[tuple[int, int, int | None]], state: WriteState) -> Plan[None]:
        """Charges channels of queues that are fair by time for handlers that have ended. ``runs``:
        channel, fence, and milliseconds that the message waited inside a worker. Their claims are
        still there."""
        if not state.fair:
            return
        ended = list(runs)
        rows = yield self._sql.statement("claim_times", listed({fence for _, fence, _ in ended}))
        began: dict[int, int] = as_dict(rows)
        sums: dict[int, tuple[int, int]] = {}
        for channel_id, fence, waited in ended:
            count, took = sums.get(channel_id, (0, 0))
            run = max(1, state.now - began[fence] - 1000 * (waited or 0))
            sums[channel_id] = count + 1, took + run
        yield self._sql.many("charge_time", [(id, *sums[id], state.now) for id in sums])

    def ended_leases(self, released: Iterable[Released]) -> Plan[list[SqliteEndedLease]]:
        """The leases with what decides about their messages."""
        leases = {lease[0]: lease[:3] for lease in released}
        rows = yield self._sql.statement("ended_lease_messages", listed(leases))
        return [SqliteEndedLease(*leases[row[0]], *row[1:]) for row in rows]

    def _end(self, ids: Sequence[int], changes: CountChanges, state: WriteState) -> Plan[None]:
        """Deletes messages and releases their keys."""
        text = listed(ids)
        rows = yield self._sql.statement("message_keys", text)
        yield self._sql.statement("delete_messages", text)
        yield from self.release_keys([SqliteEndedKey(*row) for row in rows], changes, state)

    def end_waiting(self, ids: Sequence[int], outcome: str, state: WriteState) -> Plan[list[int]]:
        """Ends those of the messages that have no lease, without an attempt; returns their ids."""
        rows = yield self._sql.statement("waiting_messages", listed(ids))
        if not rows:
            return []
        ended = [row[-1] for row in rows]
        yield self._sql.many("delete_waiting", rows)
        yield from self._lanes.no_longer_waiting(ended, state)
        entries = [(id, None, outcome, 1, 0, None, None, None, None) for id in ended]
        yield self._sql.statement("add_history", listed(entries), state.now)
        yield from self._outbox.add_events(outcome, ended, state)
        yield self._sql.statement("keep_ended", listed(ended), outcome, state.now)
        changes = CountChanges()
        for channel_id, *_ in rows:
            changes.add(channel_id, more=-1)
        yield from self._end(ended, changes, state)
        yield from self._rows.update_counts(changes, state)
        yield from self._nodes.nodes_ended(ended, {}, outcome, state)
        return ended

    def release_keys(
        self, keys: Sequence[SqliteEndedKey], changes: CountChanges, state: WriteState
    ) -> Plan[None]:
        """Frees the keys of messages that ended, or keeps them for their window. What waited behind
        such a message starts."""
        if any(key.behind is not None for key in keys):
            yield from self._start_behind(keys, changes, state)
            yield self._sql.many("give_key_to_running", [key[:3] for key in keys])
        if free := [key[:3] for key in keys if key.window is None]:
            yield self._sql.many("delete_key", free)
        if kept := [(*key[:3], state.now + key.window) for key in keys if key.window is not None]:
            yield self._sql.many("keep_key", kept)

    def _start_behind(
        self, keys: Iterable[SqliteEndedKey], changes: CountChanges, state: WriteState
    ) -> Plan[list[int]]:
        """Messages that waited behind those that ended are due from now on. Returns those that
        ended."""
        ended = [key for key in keys if key.behind == key.message_id]
        if not ended:
            return []
        now = state.now
        dues = {key.owner: max(key.behind_due or now, now) for key in ended}
        moved = [id for id in dues if id is not None]
        text = listed(moved)
        rows = yield self._sql.statement("waiting_messages", text)
        yield self._sql.many("delete_waiting", rows)
        yield from self._lanes.no_longer_waiting(moved, state)
        yield self._sql.many("move_due", list(dues.items()))
        yield self._sql.statement("add_waiting_again", text)
        yield from self._lanes.now_waiting(moved, state)
        yield self._sql.many("nothing_in_front", [key[:2] for key in ended])
        for channel_id, priority, _, id in rows:
            changes.add(channel_id, priority=priority, due=dues[id])
        return [key.message_id for key in ended]

    def _requeue(
        self,
        ended: dict[int, SqliteEndedLease],
        requeues: Sequence[SqliteRequeue],
        changes: CountChanges,
        state: WriteState,
    ) -> Plan[None]:
        """Puts messages back into their channels."""
        if not requeues:
            return
        yield self._sql.many("requeue", requeues)
        ids = [requeue.id for requeue in requeues]
        yield self._sql.statement("add_waiting_again", listed(ids))
        yield from self._lanes.now_waiting(ids, state)
        for requeue in requeues:
            lease = ended[requeue.id]
            due, priority = requeue.due, lease.priority
            changes.add(lease.channel_id, more=1, leased=-1, priority=priority, due=due)

    def _add_dead_letters(
        self,
        ended: dict[int, SqliteEndedLease],
        dead_rows: Sequence[SqliteDeadRow],
        changes: CountChanges,
        state: WriteState,
    ) -> Plan[None]:
        """Turns messages into dead letters; the history of their last attempt is written before."""
        if not dead_rows:
            return
        ids = listed(dead_row.id for dead_row in dead_rows)
        keys = yield self._sql.statement("message_keys", ids)
        yield self._sql.statement("add_dead_letters", listed(dead_rows), state.now)
        yield self._sql.statement("add_dead_counts", ids)
        yield self._sql.statement("delete_messages", ids)
        for dead_row in dead_rows:
            changes.add(ended[dead_row.id].channel_id, leased=-1)
        if keys:
            behind = yield from self._start_behind(map(SqliteEndedKey._make, keys), changes, state)
            yield self._sql.many("forget_dead_key", [(id,) for id in behind])

    def settle(
        self,
        ended: Sequence[SqliteEndedLease],
        entries: Sequence[Sequence[Any]],
        requeues: Sequence[SqliteRequeue],
        dead_rows: Sequence[SqliteDeadRow],
        state: WriteState,
    ) -> Plan[None]:
        """Requeues messages whose leases were ended, or makes them dead letters."""
        if not ended:
            return
        changes = CountChanges()
        by_id = {lease.id: lease for lease in ended}
        # What is given back was not begun; who let a lease run out may have worked all the time.
        runs = [
            (by_id[entry[0]].channel_id, entry[1], entry[8] if len(entry) > 8 else None)
            for entry in entries
            if entry[2] != "given_back"
        ]
        yield from self.charge(runs, state)
        yield self._sql.statement("add_history", listed(entries), state.now)
        yield from self._outbox.add_history_events(entries, state)
        yield from self._requeue(by_id, requeues, changes, state)
        yield from self._add_dead_letters(by_id, dead_rows, changes, state)
        yield from self._outbox.add_dead_letter_events("dead", [row.id for row in dead_rows], state)
        yield from self._rows.update_counts(changes, state)
        yield self._sql.statement(
            "delete_finished_claims", listed({lease.fence for lease in ended})
        )
        yield from self._nodes.nodes_ended([row.id for row in dead_rows], {}, "dead", state)


def by_fence(leases: Iterable[Sequence[Any]]) -> dict[int, list[int]]:
    """Message ids by the fence of their lease, as the caller states it."""
    groups: dict[int, list[int]] = {}
    for lease in leases:
        groups.setdefault(lease[1], []).append(lease[0])
    return groups
