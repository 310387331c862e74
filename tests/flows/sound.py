"""What must hold of flows in every committed state on SQLite and MySQL.

PostgreSQL's are in tests/interleavings/invariants.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from laneway.engines.flows import COUNTED, OPEN, counted

Fetch = Callable[[str, str], Sequence[Sequence[Any]]]
"""These columns of a table; all queries of one call see the same state."""


def flow_violations(fetch: Fetch, dialect: str) -> list[str]:
    """Empty if all is well."""
    counts = _counts(fetch, dialect == "mysql")
    return [*_places(fetch), *_parents(fetch, dialect), *counts]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _ids(fetch: Fetch, table: str) -> set[int]:
    return {int(row[0]) for row in fetch("id", table)}


def _places(fetch: Fetch) -> Iterator[str]:
    tables = {
        "live": _ids(fetch, "message"),
        "dead": _ids(fetch, "dead"),
        "held": _ids(fetch, "flow_held"),
    }
    # What a holder added is held and no node yet.
    for id, state in fetch("id, state", "flow_node"):
        for name, ids in tables.items():
            if (int(id) in ids) != (_text(state) == name):
                yield f"node {id} is {_text(state)}, and not where it should be ({name})"


def _parents(fetch: Fetch, dialect: str) -> Iterator[str]:
    nodes = {
        int(row[0]): (*map(int, row[1:4]), _text(row[4]))
        for row in fetch("id, pending, missed, died, state", "flow_node")
    }
    undecided: Counter[int] = Counter()
    missed: Counter[int] = Counter()
    # By child, or by the edge's number on MySQL.
    left = {
        (int(parent), bool(strict)): int(start)
        for parent, start, *kinds in fetch("parent, start, strict, others", "flow_undecided")
        for strict, decided in zip((True, False), kinds, strict=True)
        if decided
    }
    place = "number" if dialect == "mysql" else "child"
    for parent, child, strict, number in fetch(f"parent, child, strict, {place}", "flow_edge"):
        if int(parent) not in nodes or int(child) not in nodes:
            yield f"an edge from {parent} to {child}, of which one is no node"
            continue
        _, _, died, state = nodes[int(parent)]
        rest = left.get((int(parent), bool(strict)))
        if (state in OPEN and not (died and not strict)) or (
            rest is not None and int(number) >= rest
        ):
            undecided[int(child)] += 1
        elif state != "completed" or (died and not strict):
            missed[int(child)] += 1
    for id, (pending, missing, _, state) in nodes.items():
        if state != "held":
            continue
        if (pending, missing) != (undecided[id], missed[id]) or not pending:
            yield (
                f"node {id} counts {pending} parents and {missing} missed, it has "
                f"{undecided[id]} and {missed[id]}"
            )


def _counts(fetch: Fetch, changes_apart: bool) -> Iterator[str]:
    columns = ", ".join(COUNTED)
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for flow, state in fetch("flow_id, state", "flow_node"):
        found[int(flow)][counted(_text(state))] += 1
    kept: defaultdict[int, Counter[str]] = defaultdict(Counter)
    # On MySQL upkeep adds up what has changed.
    changes = [("flow_id", "flow_count")] if changes_apart else []
    for id, table in [("id", "flow"), *changes]:
        for flow, *numbers in fetch(f"{id}, {columns}", table):
            kept[int(flow)].update(dict(zip(COUNTED, map(int, numbers), strict=True)))
    for flow in kept.keys() | found.keys():
        if {k: n for k, n in kept[flow].items() if n} != {
            k: n for k, n in found[flow].items() if n
        }:
            yield f"flow {flow} counts {dict(kept[flow])}, it has {dict(found[flow])}"
