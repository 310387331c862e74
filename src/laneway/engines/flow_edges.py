"""Edges of flows, as the statements want them."""

from collections.abc import Sequence

from laneway.flow import NodeDraft


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
