"""Flows, as far as engines agree: edges, and what the end of a node means for those after it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from laneway.flow import NodeDraft
from laneway.model import Draft
from laneway.plan import Plan


def is_plain(draft: Draft) -> bool:
    """Without headers, delay and expiry, as most are: it has a shorter row."""
    times = draft.delay, draft.at, draft.expires_in, draft.expires_at
    return draft.headers is None and times == (None, None, None, None)


# Edges of flows, as the statements want them.


def edges(
    nodes: Sequence[NodeDraft], start: int, ids: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Parents, children and places. ``ids`` are those of the ``start`` nodes of the same flow that
    were sent before these: a parent among them is named by its id."""
    parents, children, places = [], [], []
    for number, node in enumerate(nodes, 1):
        for place, parent in enumerate(node.parents):
            if parent < 0:
                parent = parent + start if -parent > start else ids[-parent - 1]
            parents.append(parent)
            children.append(number)
            places.append(place)
    return parents, children, places


# What the end of a node means for those who come after it, for engines that decide it in Python.
#
# PostgreSQL does the same in functions (``end_nodes_v1``, ``decide_nodes_v1``, ``add_staged_v1``).

OPEN = frozenset(("held", "live", "dead"))
"""States of nodes that have not ended for good."""

COUNTED = ("held", "live", "dead", "completed", "failed", "skipped")
"""What a flow counts."""


class FlowNodeRow(NamedTuple):
    """As it is stored. ``pending``: parents that are not decided; ``missed``: parents that were
    decided otherwise than by completing; ``died``: was a dead letter once. MySQL also counts in it
    what its keys need: ``children``, and what a holder ``added`` under a fence."""

    id: int
    flow_id: int
    pending: int
    missed: int
    run_when: str
    state: str
    died: int
    children: int = 0
    added: int = 0
    added_fence: int | None = None


class FlowEdgeRow(NamedTuple):
    """``strict``: the child waits for the parent's completion, and a dead parent holds it.
    ``position``: among the edges of the parent, in the order in which they are decided."""

    parent: int
    child: int
    strict: int
    position: int


class UndecidedRow(NamedTuple):
    """Edges that the end of a node decides: those from a position on, ``strict`` ones or the
    ``others``, or both. ``missed``: the parent has not completed. It is stored as far as one call
    does not decide them all, and upkeep goes on with it."""

    parent: int
    strict: int
    others: int
    missed: int
    start: int
    flow_id: int


MOST_DECIDED = 5_000
"""Edges that one call decides, so that none takes long."""


class StagedRow(NamedTuple):
    """What the holder of a lease added: no node yet."""

    id: int
    flow_id: int
    adder: int
    fence: int
    parents: Sequence[int]
    run_when: str
    cancelled: bool


class FlowChanges:
    """What one call changes: nodes as they shall be, those to publish, the counts of flows.
    ``known``: nodes as they were found, which nobody else can change any more."""

    def __init__(self) -> None:
        self.nodes: dict[int, FlowNodeRow] = {}
        self.known: dict[int, FlowNodeRow] = {}
        self.edges: defaultdict[int, list[FlowEdgeRow]] = defaultdict(list)
        self.released: list[int] = []
        self.dropped: list[int] = []
        self.ended: set[int] = set()
        self.undecided: dict[tuple[int, int], UndecidedRow] = {}
        self.decided: list[tuple[int, int]] = []
        """Of stored rows, by their keys: those of which nothing is left."""
        self.room = MOST_DECIDED
        self._turns: dict[tuple[int, str | None, str], int] = {}

    def turn(self, node: FlowNodeRow, state: str) -> None:
        """Gives a node another state."""
        id, flow_id, pending, missed, _, before, *_ = node
        self.count(flow_id, before, state)
        if state not in OPEN or state == "dead":
            self.ended.add(id)
        self.nodes[id] = changed(node, pending, missed, state)

    def count(self, flow_id: int, before: str | None, after: str) -> None:
        """A node of the flow has another state; None: it is new."""
        turn = flow_id, before, after
        self._turns[turn] = self._turns.get(turn, 0) + 1

    def count_rows(self) -> list[tuple[int, ...]]:
        """By flow: its id, and what is added to each count."""
        sums: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for (flow_id, before, after), n in self._turns.items():
            if before is not None:
                sums[flow_id][counted(before)] -= n
            sums[flow_id][counted(after)] += n
        return [(flow_id, *(sums[flow_id][name] for name in COUNTED)) for flow_id in sums]


def changed(node: FlowNodeRow, pending: int, missed: int, state: str) -> FlowNodeRow:
    """As ``_replace``, which takes six times as long: a call ends many nodes."""
    values = (node[0], node[1], pending, missed, node[4], state, *node[6:])
    return tuple.__new__(FlowNodeRow, values)


def counted(state: str) -> str:
    return "failed" if state in ("cancelled", "lapsed", "discarded") else state


def state_when_decided(node: FlowNodeRow) -> str:
    """Of a held node whose last parent was decided."""
    runs = {"completed": not node.missed, "failed": bool(node.missed)}.get(node.run_when, True)
    return "live" if runs else "skipped"


class FlowEnds:
    """What an engine brings, and what is made of it. All of it in the caller's transaction."""

    def node_rows(self, ids: Iterable[int]) -> Plan[dict[int, FlowNodeRow]]:
        """Locked, in the order of their ids, where others could change them."""
        raise NotImplementedError

    def _lock_ahead(self, ended: Sequence[UndecidedRow], changes: FlowChanges) -> Plan[None]:
        """What the end of these can touch, in one order, where others could change it."""
        yield from ()

    def _child_edges(
        self, ended: Sequence[UndecidedRow], changes: FlowChanges
    ) -> Plan[tuple[Sequence[Sequence[int]], Mapping[int, int]]]:
        """As FlowEdgeRow, in the order of their positions: those that these decide. And of which
        parents not all are there: those that are locked, and not more than there is room for. For
        these, the position of the first that is missing."""
        raise NotImplementedError

    def _undecided_rows(self, parents: Sequence[int]) -> Plan[list[UndecidedRow]]:
        """What is left of these nodes."""
        raise NotImplementedError

    def _is_left(self, row: UndecidedRow, child: int) -> bool:
        """Whether a child that comes now will be decided with the rest of its parent's."""
        return child >= row.start

    def _staged_rows(self, adders: Mapping[int, FlowNodeRow]) -> Plan[list[StagedRow]]:
        raise NotImplementedError

    def _add_staged(
        self, staged: Sequence[StagedRow], dropped: Sequence[int], changes: FlowChanges
    ) -> Plan[None]:
        """As nodes that are held, with their edges. Their parents are known."""
        raise NotImplementedError

    def write_flow_changes(self, changes: FlowChanges, state: Any) -> Plan[None]:
        """The nodes, the counts, and the messages that are released."""
        raise NotImplementedError

    def _end_nodes(
        self, ids: Sequence[int], fences: Mapping[int, int], outcome: str, state: Any
    ) -> Plan[None]:
        """Some of these messages ended, or became dead letters (``outcome`` "dead"); those that are
        nodes decide their children. ``fences``: of those that a holder completed."""
        changes = FlowChanges()
        strict, missed = outcome != "dead", outcome != "completed"
        ended = [UndecidedRow(id, strict, True, missed, 0, 0) for id in ids]
        yield from self._lock_ahead(ended, changes)
        nodes = yield from self.known_rows(ids, changes)
        if not nodes:
            return
        for node in nodes.values():
            changes.turn(node, outcome)
        # Each edge is decided once: those that do not wait for the parent's completion when it dies
        # for the first time, or ends.
        ended = [
            UndecidedRow(node.id, strict, not node.died, missed, 0, node.flow_id)
            for node in nodes.values()
        ]
        yield from self._decide(ended, changes)
        yield from self._take_staged(nodes, fences, outcome, changes)
        died = {
            id: row._replace(died=1) for id, row in changes.nodes.items() if row.state == "dead"
        }
        changes.nodes |= died
        yield from self.write_flow_changes(changes, state)

    def _go_on(self, rows: Sequence[UndecidedRow], state: Any) -> Plan[None]:
        """Part of upkeep: with what the ends of nodes have left; of each node one row."""
        changes = FlowChanges()
        yield from self._lock_ahead(rows, changes)
        known = yield from self.known_rows((row.parent for row in rows), changes)
        gone = [row for row in rows if row.parent not in known]
        changes.decided += [row[:2] for row in gone]
        yield from self._decide([row for row in rows if row.parent in known], changes)
        written = changes.undecided.keys()
        changes.decided += [row[:2] for row in rows if row[:2] not in written and row not in gone]
        yield from self.write_flow_changes(changes, state)

    def known_rows(self, ids: Iterable[int], changes: FlowChanges) -> Plan[dict[int, FlowNodeRow]]:
        """Those of them that are nodes, as they were found."""
        wanted = list(ids)
        unknown = sorted({id for id in wanted if id not in changes.known})
        if unknown:
            changes.known |= yield from self.node_rows(unknown)
        return {id: changes.known[id] for id in wanted if id in changes.known}

    def _decide(self, ended: Sequence[UndecidedRow], changes: FlowChanges) -> Plan[None]:
        """Level by level: a child that is not to be run decides its own children in turn."""
        while ended:
            edges, left = yield from self._child_edges(ended, changes)
            counts: dict[int, int] = {}
            missed: dict[int, int] = {}
            rows = {row.parent: row for row in ended}
            for parent, child, strict, _ in edges:
                _, strict_ones, others, misses, *_ = rows[parent]
                if strict_ones if strict else others:
                    counts[child] = counts.get(child, 0) + 1
                    missed[child] = missed.get(child, 0) + misses
            changes.room -= len(edges)
            for parent, position in left.items():
                row = rows[parent]._replace(start=position)
                changes.undecided[row.parent, row.strict] = row
            ended = yield from self._count_down(counts, missed, changes)

    def _count_down(
        self, counts: Mapping[int, int], missed: Mapping[int, int], changes: FlowChanges
    ) -> Plan[list[UndecidedRow]]:
        """Returns what is to be decided because nodes are skipped."""
        known = yield from self.known_rows((i for i in counts if i not in changes.nodes), changes)
        skipped = []
        for id, count in counts.items():
            node = changes.nodes[id] if id in changes.nodes else known[id]
            pending = node.pending - count
            node = changed(node, pending, node.missed + missed[id], node.state)
            if node.state != "held" or pending:
                changes.nodes[id] = node
                continue
            turned = state_when_decided(node)
            changes.turn(node, turned)
            if turned == "live":
                changes.released.append(id)
            else:
                changes.dropped.append(id)
                skipped.append(UndecidedRow(id, True, True, True, 0, node.flow_id))
        return skipped

    def _take_staged(
        self,
        nodes: Mapping[int, FlowNodeRow],
        fences: Mapping[int, int],
        outcome: str,
        changes: FlowChanges,
    ) -> Plan[None]:
        """What their holders added become nodes, those of the lease that completed only."""
        staged = yield from self._staged_rows(nodes)
        if not staged:
            return
        taken = [
            row
            for row in staged
            if outcome == "completed" and fences.get(row.adder) == row.fence and not row.cancelled
        ]
        gone = {row.id for row in staged} - {row.id for row in taken}
        new = {row.id for row in taken}
        old = {parent for row in taken for parent in row.parents} - new - changes.nodes.keys()
        before = (yield from self.known_rows(old, changes)) | changes.nodes
        for row in taken:
            changes.nodes[row.id] = FlowNodeRow(
                *(row.id, row.flow_id, len(row.parents), 0, row.run_when, "held", 0)
            )
        yield from self._add_staged(taken, sorted(gone), changes)
        named = {parent for row in taken for parent in row.parents} - new
        left = yield from self._left_of_ended(named, before, changes)
        counts: Counter[int] = Counter()
        missed: Counter[int] = Counter()
        for row in taken:
            changes.count(row.flow_id, None, "held")
            counts[row.id] += 0
            for parent in row.parents:
                found = before.get(parent) if parent not in new else None
                strict = row.run_when == "completed"
                if any(
                    (rest.strict if strict else rest.others) and self._is_left(rest, row.id)
                    for rest in left.get(parent, ())
                ):
                    continue
                if found and (found.state not in OPEN or (found.died and not strict)):
                    counts[row.id] += 1
                    missed[row.id] += found.state != "completed"
        ready = {id: n for id, n in counts.items() if n or not changes.nodes[id].pending}
        skipped = yield from self._count_down(ready, missed, changes)
        yield from self._decide(skipped, changes)

    def _left_of_ended(
        self, old: Iterable[int], nodes: Mapping[int, FlowNodeRow], changes: FlowChanges
    ) -> Plan[dict[int, list[UndecidedRow]]]:
        """What is left of those that have ended or died, by parent: stored, or by this call."""
        known = [nodes[id] for id in old if id in nodes]
        ended = [node.id for node in known if node.state not in OPEN or node.died]
        rows = (yield from self._undecided_rows(sorted(ended))) if ended else []
        left: dict[int, list[UndecidedRow]] = {}
        for row in (*rows, *changes.undecided.values()):
            left.setdefault(row.parent, []).append(row)
        return left
