"""Nodes of flows that end, the messages that this releases, and flows that have ended.

Invariant: all that the end of nodes can touch is locked by one statement, in the order of ids, so
that two calls that end parents of the same children do not wait in a circle. What to lock is read
before, without a lock; whatever turns out to be missing is left to upkeep, unless it comes after
all that is locked. Locks flows before nodes, and both after leases, channels and letters.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from laneway.contract import BATCH
from laneway.engines.flows import (
    MOST_DECIDED,
    FlowChanges,
    FlowEdgeRow,
    FlowEnds,
    FlowNodeRow,
    StagedRow,
    UndecidedRow,
)
from laneway.plan import Plan, Row

from .append import MysqlAppend, released_rows
from .base import MysqlSql, joined, pair_id, text
from .events import MysqlEventOutbox

_ALIKE = 10
"""Nodes that become the same, from which on they have a statement of their own."""
_FORGOTTEN = 100
"""Expired flows that one upkeep looks at."""
_FORGOTTEN_EDGES = 5_000


class ReachedEdge(NamedTuple):
    """An edge as reach_nodes has it, with what its child is, or was a moment ago."""

    parent: int
    child: int
    strict: int
    number: int
    state: str
    run_when: str
    missed: int


def _reach(rows: Sequence[Row], edges: list[ReachedEdge], adders: dict[int, int]) -> None:
    for (line,) in rows:
        parent, flow, added, *rest = text(line).split(",")
        if added != "0":
            adders[int(parent)] = int(flow)
        if rest:
            child, strict, number, state, when, missed = rest
            numbers = int(parent), int(child), int(strict), int(number)
            edges.append(ReachedEdge(*numbers, state, when, int(missed)))


class MysqlNodeEnds(FlowEnds):
    def __init__(self, sql: MysqlSql, append: MysqlAppend, outbox: MysqlEventOutbox) -> None:
        self._sql = sql
        self._append = append
        self._outbox = outbox

    def nodes_ended(
        self, ids: Sequence[int], fences: Mapping[int, int], outcome: str, now: int
    ) -> Plan[None]:
        """Called by everything that ends messages, with those of them that are nodes."""
        if ids:
            yield from self._end_nodes(ids, fences, outcome, now)

    def _lock_ahead(self, ended: Sequence[UndecidedRow], changes: FlowChanges) -> Plan[None]:
        """These, their children, and theirs as far as they may turn out to be skipped."""
        before = {row.parent: row for row in ended}
        level, wanted = sorted(before), set(before)
        first, adders = True, dict[int, int]()
        while level and len(wanted) < 2 * MOST_DECIDED:
            starts = [(id, before[id].start if first else 0) for id in level]
            edges, added = yield from self._edges_from(starts)
            adders = adders or added
            if len(edges) > MOST_DECIDED:
                edges.sort(key=lambda edge: (edge.parent, edge.number))
                del edges[MOST_DECIDED:]
            for edge in edges:
                changes.edges[edge.parent].append(FlowEdgeRow(*edge[:4]))
            how = before if first else {}
            spreading = {edge.child for edge in edges if _may_be_skipped(edge, how)}
            level, first = sorted(spreading - wanted), False
            wanted |= {edge.child for edge in edges}
        if adders:
            # Whoever cancels the flow has it locked, and finds what was added before.
            yield from self._cancelled_flows(adders.values())
            for part in parts(sorted(adders)):
                for (parents,) in (yield self._sql.statement("added_parents", part)):
                    wanted.update(json.loads(parents))
        changes.known |= yield from self.node_rows(sorted(wanted))

    def _edges_from(
        self, starts: Sequence[tuple[int, int]]
    ) -> Plan[tuple[list[ReachedEdge], dict[int, int]]]:
        """The edges from here, and the flows of those to whom something was added."""
        edges: list[ReachedEdge] = []
        adders: dict[int, int] = {}
        for part in parts([one for one in starts if one[1] < MOST_DECIDED]):
            _reach((yield self._sql.statement("reach_nodes", part, MOST_DECIDED)), edges, adders)
        for id, start in starts:
            # Upkeep is far along the edges of a node; a range in a join would begin at the first.
            if start >= MOST_DECIDED and len(edges) <= MOST_DECIDED:
                last = start + MOST_DECIDED
                _reach((yield self._sql.statement("reach_far", id, start, last)), edges, adders)
        return edges, adders

    def node_rows(self, ids: Iterable[int]) -> Plan[dict[int, FlowNodeRow]]:
        found: dict[int, FlowNodeRow] = {}
        for part in parts(list(ids)):
            ((count, lines),) = yield self._sql.statement("lock_nodes", part)
            for line in joined(count, lines):
                id, flow, pending, missed, when, state, *rest = line.split(",")
                counts = int(id), int(flow), int(pending), int(missed)
                found[int(id)] = FlowNodeRow(*counts, when, state, *map(int, rest))
        return found

    def _child_edges(
        self, ended: Sequence[UndecidedRow], changes: FlowChanges
    ) -> Plan[tuple[Sequence[Sequence[int]], Mapping[int, int]]]:
        """As they were read before the lock, and those that have come since, up to the first that
        is not locked. One that comes after all that is locked may be locked late."""
        yield from self._read_late(ended, changes)
        edges: list[FlowEdgeRow] = []
        left: dict[int, int] = {}
        for row in ended:
            node = changes.nodes.get(row.parent) or changes.known[row.parent]
            read = changes.edges[row.parent]
            if len(read) == node.children - row.start and len(edges) + len(read) <= changes.room:
                for edge in read:
                    if edge.child not in changes.known:
                        break
                else:
                    edges += read
                    continue
            start = row.start
            for edge in sorted(read, key=lambda edge: edge.position):
                missing = edge.position != start or edge.child not in changes.known
                if missing or len(edges) >= changes.room:
                    break
                edges.append(edge)
                start += 1
            if start < node.children:
                left[row.parent] = start
        return edges, left

    def _read_late(self, ended: Sequence[UndecidedRow], changes: FlowChanges) -> Plan[None]:
        unread: list[tuple[int, int]] = []
        for one in ended:
            node = changes.nodes.get(one.parent) or changes.known[one.parent]
            start = one.start + len(changes.edges[one.parent])
            last = min(node.children, start + MOST_DECIDED - len(unread))
            unread += [(one.parent, number) for number in range(start, last)]
        if not unread or len(changes.known) > MOST_DECIDED:
            return
        late: set[int] = set()
        for part in parts(unread):
            for row in (yield self._sql.statement("late_edges", part)):
                edge = FlowEdgeRow(*map(int, row))
                changes.edges[edge.parent].append(edge)
                late.add(edge.child)
        last_locked = max(changes.known)
        if after := sorted(id for id in late - changes.known.keys() if id > last_locked):
            changes.known |= yield from self.node_rows(after)

    def _undecided_rows(self, parents: Sequence[int]) -> Plan[list[UndecidedRow]]:
        """By whole keys, and as they are now: what a caller's snapshot shows may be old."""
        keys = [(id, strict) for id in parents for strict in (0, 1)]
        rows = yield self._sql.statement("undecided_of", keys)
        return [UndecidedRow(*map(int, row)) for row in rows]

    def _is_left(self, row: UndecidedRow, child: int) -> bool:
        return True  # a new edge has the last number

    def decide_left(self, now: int) -> Plan[int]:
        """Part of upkeep, which nobody else runs: what the ends of nodes have left, a bounded
        number of children."""
        rows = yield self._sql.statement("undecided_rows", MOST_DECIDED)
        left = {int(row[0]): UndecidedRow(*map(int, row)) for row in rows}
        if left:
            yield from self._go_on(list(left.values()), now)
        return len(left)

    def _cancelled_flows(self, ids: Iterable[int]) -> Plan[set[int]]:
        rows = yield self._sql.statement("lock_flows_shared", sorted(set(ids)))
        return {int(row[0]) for row in rows if row[1]}

    def _staged_rows(self, adders: Mapping[int, FlowNodeRow]) -> Plan[list[StagedRow]]:
        adding = [node for node in adders.values() if node.added]
        if not adding:
            return []
        cancelled = yield from self._cancelled_flows(node.flow_id for node in adding)
        staged = []
        for part in parts(_added_keys(adding)):
            for adder, _, id, when, parents in (yield self._sql.statement("added_rows", part)):
                node = adders[int(adder)]
                where = int(id), node.flow_id, node.id, node.added_fence or 0
                later = node.flow_id in cancelled
                staged.append(StagedRow(*where, json.loads(parents), text(when), later))
        return staged

    def _add_staged(
        self, staged: Sequence[StagedRow], dropped: Sequence[int], changes: FlowChanges
    ) -> Plan[None]:
        adding = [
            node for node in changes.known.values() if node.added and node.id in changes.ended
        ]
        keys, taken = _added_keys(adding), {row.adder for row in staged}
        for part in parts([key for key in keys if key[0] in taken]):
            yield self._sql.statement("add_added_nodes", part)
        edges = []
        for row in staged:
            changes.known[row.id] = changes.nodes[row.id]._replace(pending=0)
            for place, parent in enumerate(row.parents):
                node = changes.nodes.get(parent) or changes.known[parent]
                strict = int(row.run_when == "completed")
                edges.append((parent, node.children, row.id, strict, place))
                changes.nodes[parent] = node._replace(children=node.children + 1)
                changes.edges[parent].append(FlowEdgeRow(parent, row.id, strict, node.children))
        for part in parts(edges):
            yield self._sql.statement("add_edges", part)
        for part in parts(keys):
            yield self._sql.statement("delete_added", part)
        for ids in parts(list(dropped)):
            yield self._sql.statement("delete_held", ids)
        for ids in parts([node.id for node in adding]):
            yield self._sql.statement("nothing_added", ids)

    def write_flow_changes(self, changes: FlowChanges, now: int) -> Plan[None]:
        yield from self._write_nodes(changes, now)
        yield from self._sql.insert("add_flow_counts", changes.count_rows())
        for part in parts(changes.decided):
            yield self._sql.statement("delete_undecided", part)
        if changes.undecided:
            yield from self._sql.insert("set_undecided", list(changes.undecided.values()))
        for part in parts(changes.dropped):
            yield self._sql.statement("delete_held", part)
        for part in parts(sorted(changes.released)):
            yield from self._release_held(part, now)

    def _write_nodes(self, changes: FlowChanges, now: int) -> Plan[None]:
        """Most of a call become the same: a statement for these takes half as long for a node."""
        alike: defaultdict[tuple[int, int, str, int], list[int]] = defaultdict(list)
        rows = []
        for id, node in changes.nodes.items():
            old, turned = changes.known[id], int(node.state != changes.known[id].state)
            if node.children != old.children:
                rows.append((id, node.pending, node.missed, node.children, node.state, turned))
            elif turned or (node.pending, node.missed) != (old.pending, old.missed):
                alike[node.pending, node.missed, node.state, turned].append(id)
        for (pending, missed, state, turned), ids in alike.items():
            if len(ids) < _ALIKE:
                rows += [
                    (id, pending, missed, changes.known[id].children, state, turned) for id in ids
                ]
                continue
            for part in parts(ids):
                values = pending, missed, state.encode(), turned, now
                yield self._sql.statement("set_alike_nodes", part, *values)
        for part in parts(sorted(rows)):
            yield self._sql.statement("set_nodes", part, now)

    def _release_held(self, ids: Sequence[int], now: int) -> Plan[None]:
        """Publishes them; no limit refuses them, because whoever ended their parents must not fail
        for it."""
        rows = yield self._sql.statement("lock_held", ids, now)
        new = [new for row in rows for new in released_rows(row, now)]
        *_, by_kind, listeners = text(rows[0][2]).split(",")
        yield self._sql.statement("release_held", ids, now)
        yield from self._sql.insert("add_released_nodes", [(len(ids), _json(ids))])
        yield self._sql.statement("delete_held", ids)
        yield from self._append.add_expiries(new)
        queues = (yield from self._append.queues_by_kind()) if by_kind != "0" else set()
        yield from self._append.add_wakes(new, now, queues)
        if listeners != "0":
            yield from self._outbox.add_message_events("published", ids)

    def revive_nodes(self, ids: Sequence[int], now: int) -> Plan[None]:
        """Dead letters that were redriven."""
        if not ids:
            return
        changes = FlowChanges()
        for node in (yield from self.known_rows(ids, changes)).values():
            changes.turn(node, "live")
        yield from self.write_flow_changes(changes, now)

    def tend_flows(
        self, counted: bool, expired: bool, undecided: bool, now: int, limit: int
    ) -> Plan[int]:
        """Part of upkeep: go on with what ends of nodes have left, add up the counts of flows, note
        which have ended, and forget those that ended long enough ago, a bounded number of nodes
        each time."""
        done = (yield from self.decide_left(now)) if undecided else 0
        if counted:
            yield from self._add_up_flows(now, 10 * limit)
        return done + ((yield from self._forget_flows(now, limit)) if expired else 0)

    def _add_up_flows(self, now: int, limit: int) -> Plan[None]:
        rows = yield self._sql.statement("counted_flows", limit)
        flows = yield self._sql.statement("lock_free_flows", sorted(int(row[0]) for row in rows))
        if not flows:
            return
        rows = yield self._sql.statement("flow_changes", [int(row[0]) for row in flows], limit + 1)
        unread = {int(row[1]) for row in rows[limit:]}
        rows = rows[:limit]
        changed = [int(row[0]) for row in rows]
        locked = 0
        for part in parts(changed):
            locked += len((yield self._sql.statement("lock_flow_changes", part)))
        if locked < len(changed):
            return  # a caller's old snapshot: others have added them up
        sums: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for _, flow, *counts in rows:
            sums[int(flow)].update(dict(enumerate(map(int, counts))))
        for part in parts(changed):
            yield self._sql.statement("delete_flow_changes", part)
        for id, queue, name, held, live, dead, ended_at in flows:
            if (more := sums.get(int(id))) is None:
                continue
            yield self._sql.statement("add_to_flow", int(id), *(more[n] for n in range(6)))
            open_nodes = (int(held) + more[0], int(live) + more[1], int(dead) + more[2])
            if ended_at is None and not any(open_nodes) and int(id) not in unread:
                yield self._sql.statement("end_flow", int(id), now)
                yield self._sql.statement("free_flow_name", pair_id(queue, name), int(id))

    def _forget_flows(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._sql.statement("expired_flows", now, _FORGOTTEN)
        flows = yield self._sql.statement("lock_free_flows", sorted(int(row[0]) for row in rows))
        done, room = 0, _FORGOTTEN_EDGES
        for flow, *_ in flows:
            nodes = yield self._sql.statement("nodes_of_flow", int(flow), limit - done)
            ids, edges = yield from self._forget_edges([int(row[0]) for row in nodes], room)
            if ids:
                keys = [(id, strict) for id in ids for strict in (0, 1)]
                yield self._sql.statement("delete_undecided", keys)
                yield self._sql.statement("delete_nodes", ids)
            done, room = done + len(ids), room - edges
            if done >= limit or len(ids) < len(nodes) or not room:
                break
            yield self._sql.statement("delete_flow", int(flow))
        return done

    def _forget_edges(self, ids: list[int], room: int) -> Plan[tuple[list[int], int]]:
        """Those of these nodes of which no edge is left, and how many edges were deleted."""
        if not ids:
            return ids, 0
        edges = yield self._sql.statement("edges_of_nodes", ids, room)
        if edges:
            yield self._sql.statement("delete_edges", [(int(row[0]), int(row[1])) for row in edges])
        if len(edges) == room:
            ids = ids[: ids.index(int(edges[-1][0]))]
        return ids, len(edges)


def parts(items: Sequence[Any]) -> Iterator[Any]:
    """As many as a statement lists."""
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _json(ids: Sequence[int]) -> bytes:
    return json.dumps(ids, separators=(",", ":")).encode()


def _may_be_skipped(edge: ReachedEdge, ended: Mapping[int, UndecidedRow]) -> bool:
    """``ended``: the parents, if these have ended; another one may be skipped itself."""
    if edge.state != "held" or edge.run_when == "ended":
        return False
    if edge.parent not in ended:
        return True
    if not ended[edge.parent].missed:
        return edge.run_when == "failed" or edge.missed > 0
    return bool(edge.strict and ended[edge.parent].strict)


def _added_keys(nodes: Iterable[FlowNodeRow]) -> list[tuple[int, int]]:
    return [(node.id, number) for node in nodes for number in range(node.added)]
