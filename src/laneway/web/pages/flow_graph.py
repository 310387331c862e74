"""A flow drawn: its nodes in columns, what comes after what; of a large one, groups of nodes."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from laneway.flow import FlowLink, NodeInfo
from laneway.web.rendering import number, visible

MOST_DRAWN = 200
"""Nodes that are drawn one by one."""
_MOST_EDGES = 1000
_ROWS = 10
"""Boxes below each other; a fuller step gets more columns."""
_BOX, _HIGH = 164, 44
_BETWEEN, _BESIDE, _BELOW = 60, 12, 12
_EDGE = 8
_LETTERS = 20

STATES = {
    "held": "held",
    "waiting": "waiting",
    "leased": "running",
    "dead": "dead letter",
    "completed": "completed",
    "cancelled": "cancelled",
    "lapsed": "lapsed",
    "discarded": "discarded",
    "skipped": "skipped",
}
"""The states of nodes in words."""
# What an operator looks for first; a group is drawn as its first state.
_ORDER = ("dead", "leased", "waiting", "held", "discarded", "cancelled", "lapsed", "skipped")


class Box(NamedTuple):
    """A node, or a group of them; ``href`` is None for a group."""

    x: int
    y: int
    state: str
    title: str
    first: str
    second: str
    href: str | None


class Drawing(NamedTuple):
    width: int
    height: int
    boxes: Sequence[Box]
    edges: Sequence[str]
    """Paths, from the right of one box to the left of another."""
    left_out: int
    """Edges that are not drawn."""


class NodeGroup(NamedTuple):
    """Nodes of one kind that are as many steps from the beginning."""

    step: int
    kind: str
    nodes: int
    states: Sequence[tuple[str, int]]
    """In words, the worst first."""
    worst: str


class _Item(NamedTuple):
    """Something to draw; ``parents`` are keys of other items."""

    key: int
    step: int
    parents: Sequence[int]
    box: Callable[[int, int], Box]
    first: bool


def steps_of(nodes: Iterable[NodeInfo]) -> dict[int, int]:
    """How many nodes come one after the other before each. A parent that is not among them counts
    as none: they come in the order of their ids, and a parent has a lower one."""
    found: dict[int, int] = {}
    for node in nodes:
        found[node.id] = max((found[p] + 1 for p in node.parents if p in found), default=0)
    return found


def draw_nodes(nodes: Sequence[NodeInfo], link: Callable[[int], str]) -> Drawing:
    """Each node as a box that leads to its message."""
    steps = steps_of(nodes)

    def boxed(node: NodeInfo) -> Callable[[int, int], Box]:
        kind, state = visible(node.kind) or "no kind", STATES[node.state]
        title = f"{kind}, {state}, message {node.id} in channel {visible(node.channel)}"
        return lambda x, y: Box(
            x, y, node.state, title, _cut(kind), f"{state} · {node.id}", link(node.id)
        )

    return _draw(
        [
            _Item(node.id, steps[node.id], node.parents, boxed(node), node.state == "dead")
            for node in nodes
        ]
    )


def group_nodes(nodes: Sequence[NodeInfo]) -> list[NodeGroup]:
    """By step, then the largest first."""
    steps = steps_of(nodes)
    states: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for node in nodes:
        states[steps[node.id], node.kind][node.state] += 1
    return sorted(
        (_group(step, kind, counted) for (step, kind), counted in states.items()),
        key=lambda group: (group.step, -group.nodes, group.kind),
    )


def draw_groups(
    nodes: Sequence[NodeInfo], groups: Sequence[NodeGroup], beyond: Sequence[FlowLink]
) -> Drawing:
    """A box for each kind in each step; ``beyond`` come after the nodes that were looked at."""
    steps = steps_of(nodes)
    keys = {(group.step, group.kind): n for n, group in enumerate(groups)}
    parents: dict[int, set[int]] = defaultdict(set)
    place = {node.id: keys[steps[node.id], node.kind] for node in nodes}
    for node in nodes:
        parents[place[node.id]].update(place[p] for p in node.parents if p in place)
    items = [
        _Item(n, group.step, sorted(parents[n] - {n}), _boxed_group(group), group.worst == "dead")
        for n, group in enumerate(groups[:MOST_DRAWN])
    ]
    last = max((group.step for group in groups), default=0)
    ends = [n for n, group in enumerate(groups) if group.step == last]
    for n, one in enumerate(beyond, len(groups)):
        items.append(_Item(n, last + 1, ends, _boxed_later(one), False))
    return _draw(items)


def _group(step: int, kind: str, counted: Counter[str]) -> NodeGroup:
    order = [*(state for state in _ORDER if state in counted), "completed"]
    states = [(STATES[state], counted[state]) for state in order if counted[state]]
    return NodeGroup(step, kind, counted.total(), states, order[0])


def _boxed_group(group: NodeGroup) -> Callable[[int, int], Box]:
    kind = visible(group.kind) or "no kind"
    said = ", ".join(f"{number(count)} {state}" for state, count in group.states)
    state, count = group.states[0]
    first = f"{_cut(kind, 12)} \u00d7 {number(group.nodes)}"
    second = state if count == group.nodes else f"{number(count)} {state}"
    return lambda x, y: Box(x, y, group.worst, f"{kind}: {said}", first, second, None)


def _boxed_later(one: FlowLink) -> Callable[[int, int], Box]:
    kind = visible(one.kind) or "no kind"
    title = f"{kind}, {STATES[one.state]}, message {one.id}: comes after these"
    return lambda x, y: Box(
        x, y, one.state, title, _cut(kind), f"{STATES[one.state]} · {one.id}", None
    )


def _draw(items: Sequence[_Item]) -> Drawing:
    """Columns from left to right; in each what is dead first, then beside its parents."""
    columns: dict[int, list[_Item]] = defaultdict(list)
    for item in items:
        columns[item.step].append(item)
    at: dict[int, tuple[int, int]] = {}
    left = _EDGE
    most = max((min(len(column), _ROWS) for column in columns.values()), default=1)
    for step in sorted(columns):
        column = sorted(columns[step], key=lambda item: (not item.first, _beside(item, at)))
        top = _EDGE + (most - min(len(column), _ROWS)) * (_HIGH + _BELOW) // 2
        for n, item in enumerate(column):
            at[item.key] = (
                left + n // _ROWS * (_BOX + _BESIDE),
                top + n % _ROWS * (_HIGH + _BELOW),
            )
        left += -(-len(column) // _ROWS) * (_BOX + _BESIDE) - _BESIDE + _BETWEEN
    edges = [(at[p], at[item.key]) for item in items for p in item.parents if p in at]
    return Drawing(
        left - _BETWEEN + _EDGE,
        2 * _EDGE + most * (_HIGH + _BELOW) - _BELOW,
        [item.box(*at[item.key]) for item in items],
        [_path(*edge) for edge in edges[:_MOST_EDGES]],
        max(0, len(edges) - _MOST_EDGES),
    )


def _beside(item: _Item, at: dict[int, tuple[int, int]]) -> tuple[float, int]:
    heights = [at[parent][1] for parent in item.parents if parent in at]
    return (sum(heights) / len(heights) if heights else 0.0, item.key)


def _path(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + _BOX, start[1] + _HIGH // 2, end[0], end[1] + _HIGH // 2
    bend = max(20, (x2 - x1) // 2)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _cut(text: str, most: int = _LETTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
