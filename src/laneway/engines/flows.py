"""Flows, as far as engines agree: edges, and what the end of a node means for those after it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from laneway.flow import NodeDraft
from laneway.plan import Plan

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
    """``strict``: the child waits for the parent's completion, and a dead parent holds it."""

    parent: int
    child: int
    strict: int


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
        self._turns: dict[tuple[int, str | None, str], int] = {}

    def turn(self, node: FlowNodeRow, state: str) -> None:
        """Gives a node another state."""
        self.count(node.flow_id, node.state, state)
        if state not in OPEN or state == "dead":
            self.ended.add(node.id)
        self.nodes[node.id] = changed(node, node.pending, node.missed, state)

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
    """As ``_replace``, which takes four times as long: a call ends many nodes."""
    return FlowNodeRow._make((*node[:2], pending, missed, node.run_when, state, *node[6:]))


def counted(state: str) -> str:
    return "failed" if state in ("cancelled", "lapsed", "discarded") else state


def state_when_decided(node: FlowNodeRow) -> str:
    """Of a held node whose last parent was decided."""
    runs = {"completed": not node.missed, "failed": bool(node.missed)}.get(node.run_when, True)
    return "live" if runs else "skipped"


class FlowEnds:
    """What an engine brings, and what is made of it. All of it in the caller's transaction."""

    def _node_rows(self, ids: Iterable[int]) -> Plan[dict[int, FlowNodeRow]]:
        """Locked, in the order of their ids, where others could change them."""
        raise NotImplementedError

    def _lock_ahead(self, ids: Sequence[int], outcome: str, changes: FlowChanges) -> Plan[None]:
        """All that the end of these can touch, in one order, where others could change it."""
        yield from ()

    def _child_edges(
        self, ids: Iterable[int], changes: FlowChanges
    ) -> Plan[Sequence[tuple[int, int, int]]]:
        """As FlowEdgeRow: those whose parents these are."""
        raise NotImplementedError

    def _staged_rows(self, adders: Mapping[int, FlowNodeRow]) -> Plan[list[StagedRow]]:
        raise NotImplementedError

    def _add_staged(
        self, staged: Sequence[StagedRow], dropped: Sequence[int], changes: FlowChanges
    ) -> Plan[None]:
        """As nodes that are held, with their edges. Their parents are known."""
        raise NotImplementedError

    def _write_flow_changes(self, changes: FlowChanges, state: Any) -> Plan[None]:
        """The nodes, the counts, and the messages that are released."""
        raise NotImplementedError

    def _end_nodes(
        self, ids: Sequence[int], fences: Mapping[int, int], outcome: str, state: Any
    ) -> Plan[None]:
        """Some of these messages ended, or became dead letters (``outcome`` "dead"); those that are
        nodes decide their children. ``fences``: of those that a holder completed."""
        changes = FlowChanges()
        yield from self._lock_ahead(ids, outcome, changes)
        nodes = yield from self._known_rows(ids, changes)
        if not nodes:
            return
        decided: list[tuple[FlowNodeRow, str]] = []
        for node in nodes.values():
            changes.turn(node, outcome)
            decided.append((node, outcome))
        yield from self._decide(decided, changes)
        yield from self._take_staged(nodes, fences, outcome, changes)
        died = {
            id: row._replace(died=1) for id, row in changes.nodes.items() if row.state == "dead"
        }
        changes.nodes |= died
        yield from self._write_flow_changes(changes, state)

    def _known_rows(self, ids: Iterable[int], changes: FlowChanges) -> Plan[dict[int, FlowNodeRow]]:
        """Those of them that are nodes, as they were found."""
        wanted = list(ids)
        unknown = sorted({id for id in wanted if id not in changes.known})
        if unknown:
            changes.known |= yield from self._node_rows(unknown)
        return {id: changes.known[id] for id in wanted if id in changes.known}

    def _decide(
        self, decided: Sequence[tuple[FlowNodeRow, str]], changes: FlowChanges
    ) -> Plan[None]:
        """Level by level: a child that is not to be run decides its own children in turn."""
        while decided:
            parents = {node.id: (node, outcome) for node, outcome in decided}
            edges = yield from self._child_edges(parents, changes)
            counts: dict[int, int] = {}
            missed: dict[int, int] = {}
            decides = {id: _decides(*how) for id, how in parents.items()}
            for parent, child, strict in edges:
                strict_ones, others, misses = decides[parent]
                if strict_ones if strict else others:
                    counts[child] = counts.get(child, 0) + 1
                    missed[child] = missed.get(child, 0) + misses
            decided = yield from self._count_down(counts, missed, changes)

    def _count_down(
        self, counts: Mapping[int, int], missed: Mapping[int, int], changes: FlowChanges
    ) -> Plan[list[tuple[FlowNodeRow, str]]]:
        """Returns those that are skipped."""
        known = yield from self._known_rows((i for i in counts if i not in changes.nodes), changes)
        skipped = []
        for id, count in counts.items():
            node = changes.nodes[id] if id in changes.nodes else known[id]
            node = changed(
                node,
                pending=node.pending - count,
                missed=node.missed + missed[id],
                state=node.state,
            )
            changes.nodes[id] = node
            if node.state != "held" or node.pending:
                continue
            turned = state_when_decided(node)
            changes.turn(node, turned)
            if turned == "live":
                changes.released.append(id)
            else:
                changes.dropped.append(id)
                skipped.append((node, turned))
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
        before = (yield from self._known_rows(old, changes)) | changes.nodes
        for row in taken:
            changes.nodes[row.id] = FlowNodeRow(
                *(row.id, row.flow_id, len(row.parents), 0, row.run_when, "held", 0)
            )
        yield from self._add_staged(taken, sorted(gone), changes)
        counts: Counter[int] = Counter()
        missed: Counter[int] = Counter()
        for row in taken:
            changes.count(row.flow_id, None, "held")
            counts[row.id] += 0
            for parent in row.parents:
                found = before.get(parent) if parent not in new else None
                strict = row.run_when == "completed"
                if found and (found.state not in OPEN or (found.died and not strict)):
                    counts[row.id] += 1
                    missed[row.id] += found.state != "completed"
        ready = {id: n for id, n in counts.items() if n or not changes.nodes[id].pending}
        skipped = yield from self._count_down(ready, missed, changes)
        yield from self._decide(skipped, changes)


def _decides(parent: FlowNodeRow, outcome: str) -> tuple[bool, bool, bool]:
    """Whether the edges to those who wait for its completion are decided, whether the others are,
    and whether it has missed that. ``parent``: as it was before. Each edge is decided once: those
    that do not wait for the parent's completion when it dies for the first time, or ends."""
    return outcome != "dead", not parent.died, outcome != "completed"
