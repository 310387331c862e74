"""The verbs of flows.

Invariant: a node has the id of its message from the beginning. The ids of those that are held come
from the same counter: rows of messages that take them are added and deleted again, in one
transaction.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from laneway.contract import BATCH
from laneway.engines.flows import FlowChanges, is_plain
from laneway.engines.times import micros, moment
from laneway.errors import InvalidOption
from laneway.flow import (
    MOST_LINKS,
    MOST_PARENTS,
    DeadNode,
    FlowDraft,
    FlowInfo,
    FlowLink,
    FlowParent,
    FlowPlace,
    NodeDraft,
    NodeInfo,
    PublishedFlow,
    StagedNodes,
)
from laneway.model import Draft
from laneway.plan import Plan, Row

from .append import MysqlAppend, NewRow, new_rows
from .base import MysqlChannelLocks, MysqlSql, chunks, pair_id, repeatable, text
from .dead_letters import MysqlDeadLetters
from .events import MysqlEventOutbox
from .flows_release import MysqlNodeEnds, parts
from .operate.control import MysqlWorkers
from .publish import MysqlPublishState
from .settle.settle import MysqlSettle

_WIDEST = 65_535
"""The largest step between ids that servers take."""


class MysqlFlows:
    def __init__(
        self,
        sql: MysqlSql,
        state: MysqlPublishState,
        append: MysqlAppend,
        locks: MysqlChannelLocks,
        outbox: MysqlEventOutbox,
        leases: MysqlSettle,
        nodes: MysqlNodeEnds,
        workers: MysqlWorkers,
        dead_letters: MysqlDeadLetters,
    ) -> None:
        self._sql = sql
        self._state = state
        self._append = append
        self._locks = locks
        self._outbox = outbox
        self._leases = leases
        self._nodes = nodes
        self._workers = workers
        self._dead_letters = dead_letters

    @repeatable
    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        state = yield from self._state.publish_state()
        now, packet, step, any_gated, any_listener, by_kind = state
        first = new_rows([node.draft for node in nodes if not node.parents], int(now))
        if any_gated:
            yield from self._append.refuse(first)
            for row in first:
                if row.status == "full" or row.status == "closed":
                    return PublishedFlow(None, [], row.status)
        existing = yield from self._take_name(flow, int(now))
        if existing is not None:
            return PublishedFlow(existing, [], "existing")
        names = flow.queue.encode(), flow.name.encode()
        counts = len(nodes) - len(first), len(first)
        rows = yield self._sql.statement(
            "add_flow", [(*names, int(now), micros(flow.keep), *counts)]
        )
        flow_id = int(rows[0][0])
        yield self._sql.statement("give_flow_name", pair_id(*names), flow_id)
        live = iter((yield from self._add_live_messages(first, flow_id, int(packet), int(step))))
        held = iter((yield from self._new_ids(counts[0], int(step))))
        ids = [next(held if node.parents else live) for node in nodes]
        yield from self._add_nodes(flow_id, nodes, ids, int(packet))
        yield from self._append.add_expiries(first)
        queues = (yield from self._append.queues_by_kind()) if by_kind else set()
        yield from self._append.add_wakes(first, int(now), queues)
        if any_listener:
            yield from self._outbox.add_message_events(
                "published", [row.id for row in first if row.id]
            )
        return PublishedFlow(flow_id, ids, "published")

    def _take_name(self, flow: FlowDraft, now: int) -> Plan[int | None]:
        """The flow that has the name and has not ended; or none, and the name is locked. One that
        is taken is only read, so that nobody waits for us."""
        id = pair_id(flow.queue.encode(), flow.name.encode())
        rows = yield self._sql.statement("flow_of_name", id)
        if rows:
            ((flow_id, runs, isolation),) = rows
            if text(isolation) == "READ-COMMITTED" and runs:
                return int(flow_id)
        yield self._sql.statement("take_flow_name", [(id, 0)])
        ((owner,),) = yield self._sql.statement("owner_of_name", id)
        if not owner:
            return None
        rows = yield self._sql.statement("flow_of_name", id)
        # What an old snapshot does not show has come since.
        if not rows:
            return int(owner)
        ((flow_id, runs, _),) = rows
        if int(flow_id) != owner or runs is None or runs:
            return int(owner)
        # Upkeep has not noted yet that it has ended.
        yield self._sql.statement("end_flow", owner, now)
        return None

    def _add_live_messages(
        self, live: Sequence[NewRow], flow_id: int, packet: int, step: int
    ) -> Plan[list[int]]:
        ids: list[int] = []
        for chunk in chunks(live, packet):
            rows = [(*row.row, flow_id) for row in chunk]
            added = yield self._sql.statement("add_node_messages", rows)
            for number, row in enumerate(chunk):
                row.id = int(added[0][0]) + number * step
                ids.append(row.id)
        return ids

    def _new_ids(self, count: int, step: int) -> Plan[list[int]]:
        """Of messages that are held: a row takes as many ids as are wanted. Another one has the
        last of them, so that replicas and a server that was killed give out none of them again."""
        ids: list[int] = []
        while len(ids) < count:
            width = min(count - len(ids), BATCH, _WIDEST // step) * step
            rows = yield self._sql.statement("take_ids", [width])
            first = int(rows[0][0])
            taken = range(first, first + width, step)
            ends = sorted({first, taken[-1]})
            if len(ends) > 1:
                yield self._sql.statement("add_id", taken[-1])
            yield self._sql.statement("delete_messages", ends)
            ids += taken
        return ids

    def _add_nodes(
        self, flow_id: int, nodes: Sequence[NodeDraft], ids: Sequence[int], packet: int
    ) -> Plan[None]:
        children: dict[int, int] = defaultdict(int)
        edges, live, held = [], [], []
        for id, node in zip(ids, nodes, strict=True):
            strict = int(node.when == "completed")
            for place, parent in enumerate(_ids(node.parents, ids)):
                edges.append((parent, children[parent], id, strict, place))
                children[parent] += 1
        for id, node in zip(ids, nodes, strict=True):
            draft, pending = node.draft, len(node.parents)
            if pending:
                held.append((id, pending, children[id], node.when))
                continue
            where = draft.queue.encode(), draft.channel.encode(), draft.kind.encode()
            live.append((id, flow_id, 0, children[id], node.when.encode(), b"live", *where))
        drafts = [(id, node.draft) for id, node in zip(ids, nodes, strict=True) if node.parents]
        yield from self._add_held(flow_id, drafts, packet)
        for part in parts(held):
            yield self._sql.statement("add_held_nodes", part)
        yield from self._sql.insert("add_nodes", live)
        for part in parts(edges):
            yield self._sql.statement("add_edges", part)

    def _add_held(
        self, flow_id: int, drafts: Sequence[tuple[int, Draft]], packet: int
    ) -> Plan[None]:
        # Values cost more than storing them: those that are null in most are left out.
        plain = [_plain_row(id, flow_id, draft) for id, draft in drafts if is_plain(draft)]
        other = [_held_row(id, flow_id, draft) for id, draft in drafts if not is_plain(draft)]
        for chunk in chunks(plain, packet):
            yield self._sql.statement("add_plain_held", chunk)
        for chunk in chunks(other, packet):
            yield self._sql.statement("add_held", chunk)

    @repeatable
    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        adder, fence = int(lease[0]), int(lease[1])
        if not (yield from self._leases.lock_leases("lock_leases_to_extend", [(adder, fence)])):
            return StagedNodes([], "lost")
        ((flow_id,),) = yield self._sql.statement("flow_of_message", adder)
        if flow_id is None:
            return StagedNodes([], "none")
        added = yield from self._added_before(adder, fence)
        known = {parent for node in nodes for parent in node.parents if parent > 0}
        yield from self._check_parents(known - set(added), int(flow_id))
        _, packet, step, *_ = yield from self._state.publish_state()
        ids = yield from self._new_ids(len(nodes), int(step))
        rows = []
        for number, (id, node) in enumerate(zip(ids, nodes, strict=True), len(added)):
            parents = json.dumps(_ids(node.parents, ids)).encode()
            rows.append((adder, number, id, node.when.encode(), parents))
        for chunk in chunks(rows, int(packet)):
            yield self._sql.statement("add_added", chunk)
        drafts = [(id, node.draft) for id, node in zip(ids, nodes, strict=True)]
        yield from self._add_held(int(flow_id), drafts, int(packet))
        yield self._sql.statement("set_added", adder, len(added) + len(nodes), fence)
        return StagedNodes(ids, "staged")

    def _added_before(self, adder: int, fence: int) -> Plan[list[int]]:
        """What this attempt has added so far; what earlier ones left is deleted."""
        (node,) = (yield from self._nodes.node_rows([adder])).values()
        keys = [(adder, number) for number in range(node.added)]
        ids: list[int] = []
        for part in parts(keys):
            ids += [int(row[2]) for row in (yield self._sql.statement("added_rows", part))]
        if node.added_fence == fence:
            return ids
        for part in parts(keys):
            yield self._sql.statement("delete_added", part)
        for part in parts(ids):
            yield self._sql.statement("delete_held", part)
        return []

    def _check_parents(self, ids: Iterable[int], flow_id: int) -> Plan[None]:
        missing = set(ids)
        for part in parts(sorted(missing)):
            rows = yield self._sql.statement("known_nodes", part, flow_id)
            missing -= {int(row[0]) for row in rows}
        if missing:
            # A caller's old snapshot does not show what came later.
            found = yield from self._nodes.node_rows(sorted(missing))
            missing -= {id for id, node in found.items() if node.flow_id == flow_id}
        if missing:
            raise InvalidOption("a node can only come after nodes of the same flow")

    @repeatable
    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        rows = yield self._sql.statement("parents", message_id)
        return [FlowParent(int(id), text(kind), text(state)) for id, kind, state in rows]

    @repeatable
    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        name = None if queue is None else queue.encode()
        rows = yield self._sql.statement("flows", name, before, limit)
        return [_flow(row) for row in rows]

    @repeatable
    def flow(self, flow_id: int) -> Plan[FlowInfo | None]:
        rows = yield self._sql.statement("flow", flow_id)
        return _flow(rows[0]) if rows else None

    @repeatable
    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        rows = yield self._sql.statement("flow_nodes", flow_id, after, limit)
        return (yield from self._node_infos(rows))

    def _node_infos(self, rows: Sequence[Row]) -> Plan[list[NodeInfo]]:
        found: dict[int, list[int]] = defaultdict(list)
        for part in parts([int(row[0]) for row in rows]):
            for child, parent in (yield self._sql.statement("node_parents", part, MOST_PARENTS)):
                found[int(child)].append(int(parent))
        return [
            NodeInfo(
                *(int(id), text(queue), text(channel), text(kind), text(when), text(state)),  # type: ignore[arg-type]
                *(moment(ended), found[int(id)], int(pending)),
            )
            for id, queue, channel, kind, when, state, ended, pending in rows
        ]

    @repeatable
    def flow_place(self, message_id: int) -> Plan[FlowPlace | None]:
        rows = yield self._sql.statement("flow_place", message_id)
        flow = (yield from self.flow(int(rows[0][-1]))) if rows else None
        if flow is None:
            return None
        (node,) = yield from self._node_infos([row[:-1] for row in rows])
        parents = yield self._sql.statement("parent_links", message_id, MOST_LINKS)
        children = yield self._sql.statement("child_links", message_id, MOST_LINKS)
        links = [_link("parent", row) for row in parents], [_link("child", row) for row in children]
        return FlowPlace(flow, node, *links)

    @repeatable
    def flows_with_dead(self, limit: int) -> Plan[list[FlowInfo]]:
        """From one flow to the next: a statement that groups them may read all dead letters."""
        found: list[FlowInfo] = []
        last = 0
        while len(found) < limit:
            rows = yield self._sql.statement("next_flow_with_dead", last)
            if not rows:
                break
            last = int(rows[0][0])
            flow = yield from self.flow(last)
            found += [flow] if flow else []
        return found

    @repeatable
    def dead_nodes(self, flow_id: int, limit: int) -> Plan[list[DeadNode]]:
        rows = yield self._sql.statement("dead_nodes", flow_id, limit)
        return [
            DeadNode(int(id), text(queue), text(channel), text(kind), moment(died))
            for id, queue, channel, kind, died in rows
        ]

    @repeatable
    def cancel_flow(self, flow_id: int) -> Plan[None]:
        """Its messages' channels are locked first, as whoever ends them does."""
        channels = yield self._sql.statement("live_channels", flow_id)
        yield from self._locks.lock_channels([(queue, name) for queue, name in channels])
        if not (yield self._sql.statement("lock_flow", flow_id)):
            return
        yield self._sql.statement("mark_flow_cancelled", flow_id, self._sql.now())
        rows = yield self._sql.statement("lock_open_nodes", flow_id)
        states = {int(id): text(state) for id, state in rows}
        changes = FlowChanges()
        held = [id for id, state in states.items() if state == "held"]
        for node in (yield from self._nodes.known_rows(held, changes)).values():
            changes.turn(node, "cancelled")
            changes.dropped.append(node.id)
        if changes.nodes:
            ((now,),) = yield self._sql.statement("clock", self._sql.now())
            yield from self._nodes.write_flow_changes(changes, int(now))
        for part in parts([id for id, state in states.items() if state == "live"]):
            yield from self._workers.cancel_running(part)
        for part in parts([id for id, state in states.items() if state == "dead"]):
            yield from self._dead_letters.discard(part)


def _ids(parents: Iterable[int], ids: Sequence[int]) -> list[int]:
    return [ids[-parent - 1] if parent < 0 else parent for parent in parents]


def _plain_row(id: int, flow_id: int, draft: Draft) -> tuple[Any, ...]:
    return (
        *(id, flow_id, draft.max_attempts, draft.priority),
        *(draft.queue.encode(), draft.channel.encode(), draft.kind.encode()),
        *(draft.content_type.encode(), draft.payload),
    )


def _held_row(id: int, flow_id: int, draft: Draft) -> tuple[Any, ...]:
    return (
        *(id, flow_id, micros(draft.delay), micros(draft.at)),
        *(micros(draft.expires_in), micros(draft.expires_at), draft.max_attempts, draft.priority),
        *(draft.queue.encode(), draft.channel.encode(), draft.kind.encode()),
        *(draft.content_type.encode(), draft.headers and draft.headers.encode(), draft.payload),
    )


def _link(side: Literal["parent", "child"], row: Row) -> FlowLink:
    id, queue, channel, kind, state = row
    return FlowLink(side, int(id), text(queue), text(channel), text(kind), text(state))  # type: ignore[arg-type]


def _flow(row: Row) -> FlowInfo:
    id, queue, name, created, cancelled, ended, *rest = row
    held, live, dead, completed, failed, skipped, undecided = map(int, rest)
    state = "cancelled" if cancelled is not None else "failed" if failed else "completed"
    state = "running" if live or undecided else "dead" if dead else state
    times = moment(created), moment(cancelled), moment(ended)
    counts = held, live, dead, completed, failed, skipped
    return FlowInfo(int(id), text(queue), text(name), *times, state, *counts)  # type: ignore[arg-type]
