"""Nodes that end, and the messages that this releases. One writer at a time: nothing is locked."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from laneway.engines.flow_ends import (
    FlowChanges,
    FlowEdgeRow,
    FlowEnds,
    FlowNodeRow,
    StagedRow,
)
from laneway.engines.sqlite.base import WriteState, listed
from laneway.engines.sqlite.channel_rows import CountChanges, SqliteChannelRows
from laneway.plan import Plan


class SqliteNodeEnds(FlowEnds, SqliteChannelRows):
    def _nodes_ended(
        self, ids: Sequence[int], fences: Mapping[int, int], outcome: str, state: WriteState
    ) -> Plan[None]:
        """Called by everything that ends messages, after it has done so."""
        if state.has_flows and ids:
            yield from self._end_nodes(ids, fences, outcome, state)

    def _node_rows(self, ids: Iterable[int]) -> Plan[dict[int, FlowNodeRow]]:
        rows = yield self._statement("node_rows", listed(ids))
        return {row[0]: FlowNodeRow(*row) for row in rows}

    def _child_edges(self, ids: Iterable[int]) -> Plan[list[FlowEdgeRow]]:
        rows = yield self._statement("child_edges", listed(ids))
        return [FlowEdgeRow(*row) for row in rows]

    def _staged_rows(self, adders: Iterable[int]) -> Plan[list[StagedRow]]:
        rows = yield self._statement("staged_rows", listed(adders))
        return [
            StagedRow(id, flow_id, adder, fence, json.loads(parents), when, bool(cancelled))
            for id, flow_id, adder, fence, parents, when, cancelled in rows
        ]

    def _add_staged(self, staged: Sequence[StagedRow], dropped: Sequence[int]) -> Plan[None]:
        if dropped:
            yield self._statement("delete_held", listed(dropped))
        if staged:
            ids = listed(row.id for row in staged)
            yield self._statement("add_staged_nodes", ids)
            yield self._statement("add_staged_edges", ids)
            yield self._statement("unstage_nodes", ids)

    def _write_flow_changes(self, changes: FlowChanges, state: WriteState) -> Plan[None]:
        yield self._many("write_node", _node_values(changes, state.now))
        yield self._many("count_flow", changes.count_rows())
        if changes.dropped:
            yield self._statement("delete_held", listed(changes.dropped))
        if changes.released:
            yield from self._release_nodes(changes.released)

    def _release_nodes(self, ids: Sequence[int]) -> Plan[None]:
        """Publishes them; no limit refuses them, because whoever ended their parents must not fail
        for it."""
        text = listed(ids)
        names = yield self._statement("held_channels", text)
        state = yield from self._begin_write(turns=len(names))
        yield from self._channels([(queue, channel) for queue, channel in names], state.now)
        rows = yield self._statement("release_nodes", text, state.now)
        yield self._statement("add_waiting_again", text)
        yield from self._now_waiting((row[0] for row in rows), state)
        yield self._statement("delete_held", text)
        changes = CountChanges()
        for _, channel_id, priority, due in rows:
            changes.add(channel_id, more=1, priority=priority, due=due)
        yield from self._update_counts(changes, state)
        yield from self._add_events("published", [row[0] for row in rows], state)

    def _revive_nodes(self, ids: Sequence[int], state: WriteState) -> Plan[None]:
        """Dead letters that were redriven."""
        if not state.has_flows:
            return
        changes = FlowChanges()
        for node in (yield from self._node_rows(ids)).values():
            changes.turn(node, "live")
        if changes.nodes:
            yield from self._write_flow_changes(changes, state)

    def _forget_flows(self, state: WriteState, limit: int) -> Plan[int]:
        """Part of upkeep: which have ended, and which are no longer kept."""
        yield self._statement("end_flows", state.now)
        nodes = listed(
            row[0] for row in (yield self._statement("expired_flow_nodes", state.now, limit))
        )
        yield self._statement("delete_flow_edges", nodes)
        yield self._statement("delete_flow_nodes", nodes)
        yield self._statement("delete_flows", state.now)
        return len(json.loads(nodes))


def _node_values(changes: FlowChanges, now: int) -> list[tuple[Any, ...]]:
    return [
        (id, row.pending, row.missed, row.state, row.died, now if id in changes.ended else None)
        for id, row in changes.nodes.items()
    ]
