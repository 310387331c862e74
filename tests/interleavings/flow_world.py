"""A flow with a parent in every state, and what can happen to it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tests.interleavings.scripts import Script
from tests.interleavings.world import Connection, World

_PUBLISH = """
select flow_id, ids from laneway.publish_flow_v1(
    null, 'q', %(name)s, '1 day', %(when)s, %(parents)s, %(children)s, %(children)s,
    array_fill('x'::bytea, array[%(count)s]), array['q'], array['a'], '{}', '{}', '{}', '{}',
    %(delays)s::interval[], '{}', '{}', '{}', '{}')
"""
_STAGE = """
select status from laneway.stage_nodes_v1(
    %s, %s, array['completed'], array[-1, %s], array[2, 2], array[1, 2],
    array['x', 'x']::bytea[], array['q'], array['a'], '{}', '{}', '{}', '{}', '{}',
    '{}', '{}', '{}', '{}')
"""


class Node(NamedTuple):
    """``after``: the numbers of earlier nodes, from 1."""

    after: Sequence[int] = ()
    when: str = "completed"
    delay: str | None = None


# one, two: leased; idle: waits for an hour; dead: a letter; expired: leased, the lease ran out.
ONE, TWO, IDLE, DEAD, EXPIRED = 1, 2, 3, 4, 5
NODES = (
    *(Node(), Node(), Node(delay="1 hour"), Node(), Node()),
    # Children of all kinds, that have their parents in different orders.
    *(Node((ONE, TWO)), Node((TWO, ONE), "ended"), Node((ONE, IDLE), "failed")),
    *(Node((DEAD, TWO)), Node((ONE, DEAD, EXPIRED), "ended"), Node((IDLE, EXPIRED))),
    # And theirs.
    *(Node((6, 9)), Node((8, 11), "failed"), Node((12, 7, 10), "ended"), Node((13,), "failed")),
)


class FlowWorld(World):
    flow: int

    def publish_flow(self, connection: Connection, nodes: Sequence[Node], name: str) -> list[int]:
        edges = [(-parent, n) for n, node in enumerate(nodes, 1) for parent in node.after]
        params = {
            "name": name,
            "count": len(nodes),
            "when": [node.when for node in nodes],
            "parents": [parent for parent, _ in edges],
            "children": [child for _, child in edges],
            "delays": [node.delay for node in nodes],
        }
        self.flow, ids = connection.execute(_PUBLISH, params).fetchone() or (0, [])
        return list(ids or [])

    def reset_flow(self) -> None:
        self.clear()
        self.ids = self.publish_flow(self.own, NODES, "f")
        self.fences = {}
        for lease in ("1 hour", "1 hour", "1 hour", "-1 second"):
            ((id, fence),) = self.claim(self.own, limit=1, lease=lease)
            self.fences[id] = fence
        self.settle(self.own, "fail", self.id(DEAD))
        assert set(self.fences) == {self.id(n) for n in (ONE, TWO, DEAD, EXPIRED)}
        self.stage(self.own)

    def id(self, number: int) -> int:
        return self.ids[number - 1]

    def complete(self, connection: Connection, *numbers: int) -> None:
        ids = [self.id(number) for number in numbers]
        connection.execute(
            "select laneway.complete_v1(%s, %s)", [ids, [self.fences[id] for id in ids]]
        )

    def stage(self, connection: Connection) -> None:
        # The second one comes after two as well, which may end meanwhile.
        values = [self.id(ONE), self.fences[self.id(ONE)], self.id(TWO)]
        connection.execute(_STAGE, values)

    def drain_flow(self) -> None:
        """Whatever happened, it goes on to its end."""
        own = self.own
        own.execute("update laneway.lease set until = clock_timestamp() - interval '1 s'")
        for _ in range(30):
            own.execute("select laneway.redrive_v1(array(select id from laneway.dead))")
            own.execute("select laneway.run_now_v1(array(select id from laneway.message))")
            own.execute("select laneway.upkeep_v1()")
            if not (got := self.claim(own, limit=4)):
                break
            ids, fences = zip(*got, strict=True)
            assert not own.execute(
                "select id from laneway.complete_v1(%s, %s)", [list(ids), list(fences)]
            ).fetchall()
        own.execute("select laneway.upkeep_v1()")
        self.check_flow()
        left = own.execute(
            "select id, state, pending from laneway.flow_node"
            " where state in ('held', 'live', 'dead')"
        ).fetchall()
        assert not left, f"never ended: {left}"
        assert own.execute("select id from laneway.flow_held").fetchall() == []
        open_flows = own.execute("select id from laneway.flow where ended_at is null").fetchall()
        assert not open_flows, "ended and not noted"

    def check_flow(self) -> None:
        from tests.interleavings.invariants import violations

        broken = violations(self.own)
        assert not broken, broken


def _on(name: str, query: str, *numbers: int) -> Script:
    def verb(world: World, connection: Connection) -> None:
        assert isinstance(world, FlowWorld)
        connection.execute(query.encode(), [[world.id(number) for number in numbers]])

    return Script(name, verb, True)


def _complete(name: str, *numbers: int) -> Script:
    def verb(world: World, connection: Connection) -> None:
        assert isinstance(world, FlowWorld)
        world.complete(connection, *numbers)

    return Script(name, verb, True)


def _of(name: str, verb: str, number: int) -> Script:
    def run(world: World, connection: Connection) -> None:
        assert isinstance(world, FlowWorld)
        world.settle(connection, verb, world.id(number))

    return Script(name, run, True)


def _say(name: str, query: str, open: bool = True) -> Script:
    return Script(name, lambda world, connection: connection.execute(query.encode()), open)


def _cancel_flow(world: World, connection: Connection) -> None:
    assert isinstance(world, FlowWorld)
    rows = connection.execute("select id, state from laneway.cancel_flow_v1(%s)", [world.flow])
    live = [id for id, state in rows.fetchall() if state == "live"]
    connection.execute("select laneway.cancel_running_v1(%s)", [live])


def _again(world: World, connection: Connection) -> None:
    assert isinstance(world, FlowWorld)
    flow = world.flow
    world.publish_flow(connection, NODES[:2], "f")
    world.flow = flow


FLOW_SCRIPTS = (
    _complete("complete one", ONE),
    _complete("complete two", TWO),
    _complete("complete both", ONE, TWO),
    _complete("complete all", EXPIRED, TWO, ONE),
    _of("fail one", "fail", ONE),
    _of("defer one", "defer", ONE),
    _on("cancel idle", "select laneway.cancel_v1(%s)", IDLE),
    _on("redrive dead", "select laneway.redrive_v1(%s)", DEAD),
    _on("discard dead", "select laneway.discard_v1(%s)", DEAD),
    Script("add to one", lambda world, c: partial(FlowWorld.stage, world)(c), True),  # type: ignore[arg-type]
    Script("cancel flow", _cancel_flow, False),
    Script("publish again", _again, True),
    _say("upkeep", "select laneway.upkeep_v1()", False),
)
