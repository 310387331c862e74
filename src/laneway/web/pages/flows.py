"""Flows: which run, which stand still; one flow with its nodes drawn."""

from collections.abc import Sequence
from typing import Any, get_args

from laneway.errors import FlowMissing
from laneway.flow import (
    DeadNode,
    FlowInfo,
    FlowLink,
    FlowPage,
    FlowPlace,
    FlowState,
    NodeInfo,
)
from laneway.inspection import MessageInfo
from laneway.web.context import PAGE_ROWS, Context, PageView
from laneway.web.rendering import visible
from laneway.web.request import NotFound

from .flow_graph import MOST_DRAWN, STATES, NodeGroup, draw_groups, draw_nodes, group_nodes
from .problems import still_flows

_LOOKED = 2000
"""Nodes of a large flow that are looked at for the groups."""
_DEAD = 10
_BEYOND = 5
_SHOWN = 20
"""Parents and children on a message's page."""
_OPEN = ("dead", "leased", "waiting", "held")


def flows(context: Context) -> PageView:
    """The newest first, or those of a queue or in a state."""
    lack = context.lacks("flows")
    queue, state = context.text("queue"), context.text("state")
    page = FlowPage()
    if lack is None:
        page = context.read(
            "flows",
            queue=queue,
            state=state,
            limit=PAGE_ROWS,
            before=context.whole("before") or None,
        )
    values = {
        "lack": lack,
        "rows": page,
        "next": page.next,
        "looked": page.looked,
        "queue": queue,
        "state": state,
        "states": get_args(FlowState),
        "still": [] if queue or state or "before" in context.params else still_flows(context),
    }
    return PageView("flows.html", "Flows", values)


def flow(context: Context) -> PageView:
    """One flow: what it waits for, its dead letters, its nodes."""
    number = int(context.request.path.rpartition("/")[2])
    if context.lacks("flows") is not None:
        raise NotFound(str(context.lacks("flows")))
    try:
        info: FlowInfo = context.read("flow", number)
    except FlowMissing as error:
        raise NotFound(str(error)) from None
    after = context.whole("after")
    nodes: Sequence[NodeInfo] = context.read("flow_nodes", number, limit=PAGE_ROWS, after=after)
    values = {
        "info": info,
        "dead": _dead(context, info),
        "nodes": nodes,
        "states": STATES,
        "next": nodes[-1].id if len(nodes) == PAGE_ROWS else None,
        **_drawn(context, info),
    }
    return PageView("flow.html", f"Flow {visible(info.name)}", values)


def _drawn(context: Context, info: FlowInfo) -> dict[str, Any]:
    small = info.nodes <= MOST_DRAWN
    nodes: Sequence[NodeInfo] = context.read(
        "flow_nodes",
        info.id,
        limit=MOST_DRAWN if small else _LOOKED,
        after=0 if small else context.whole("from"),
    )
    groups: list[NodeGroup] = [] if small else group_nodes(nodes)
    further = None if small or len(nodes) < _LOOKED else nodes[-1].id
    if small:
        drawing = draw_nodes(nodes, lambda id: context.link(f"messages/{id}"))
    else:
        drawing = draw_groups(nodes, groups, _beyond(context, nodes) if further else [])
    return {"drawing": drawing, "groups": groups, "looked": len(nodes), "further": further}


def _beyond(context: Context, nodes: Sequence[NodeInfo]) -> list[FlowLink]:
    """What comes after the last of these nodes, if it was not looked at itself."""
    last = nodes[-1].id
    place: FlowPlace | None = context.read("flow_place", last)
    return [] if place is None else [one for one in place.children if one.id > last][:_BEYOND]


def _dead(context: Context, info: FlowInfo) -> list[tuple[DeadNode, str, str]]:
    """The first dead letters, with their errors."""
    if not info.dead:
        return []
    found = []
    for node in context.read("dead_nodes", info.id, limit=_DEAD):
        letter: MessageInfo | None = context.read("message", node.id)
        reason = (letter.error_type or letter.reason or "") if letter else ""
        error = context.redact("error", letter.error or "") if letter else ""
        found.append((node, reason, error))
    return found


def flow_values(context: Context, message_id: int) -> dict[str, Any] | None:
    """For the page of a message: the flow that it belongs to, or None."""
    if not context.may("flow_place") or context.lacks("flows") is not None:
        return None
    place: FlowPlace | None = context.read("flow_place", message_id)
    if place is None:
        return None
    return {
        "flow": place.flow,
        "node": place.node,
        "state": STATES[place.node.state],
        "states": STATES,
        "sides": (
            ("Comes after", "parents", _first(place.parents), len(place.parents)),
            ("Comes before", "children", _first(place.children), len(place.children)),
        ),
    }


def _first(links: Sequence[FlowLink]) -> list[FlowLink]:
    """What has not ended comes first: that is what it waits for."""
    order = {state: n for n, state in enumerate(_OPEN)}
    return sorted(links, key=lambda one: order.get(one.state, len(order)))[:_SHOWN]
