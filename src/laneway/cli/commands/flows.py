"""flows: list, show, wait, redrive, cancel."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, cast

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, note_unknown_queue
from laneway.cli.exits import Code, ListGroup
from laneway.cli.options import Json, Limit, OnlyQueue, Schema, Url, Yes, age
from laneway.cli.output import Column, emit, emit_all, say, table

if TYPE_CHECKING:
    from laneway import Queue
    from laneway.flow import FlowInfo, FlowState, NodeInfo

app = typer.Typer(
    cls=ListGroup,
    help="List, show, redrive and cancel flows, or wait for one.",
    rich_markup_mode=None,
)

_COLUMNS = (
    Column("id", right=True),
    Column("queue", wide=80),
    Column("name"),
    Column("state"),
    Column("done", right=True),
    Column("nodes", right=True),
    Column("dead", right=True, wide=70),
    Column("created", right=True),
)
_NODES = (
    Column("id", right=True),
    Column("kind"),
    Column("channel", wide=90),
    Column("state"),
    Column("when", wide=100),
    Column("after"),
)
_FEW = 5

Id = Annotated[int, typer.Argument(metavar="ID", help="The flow's id.", min=1)]


@app.command("list")
def list_flows(
    queue: OnlyQueue = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            show_default=False,
            help="Only flows in this state: running, dead (held by a dead letter), completed, "
            "failed or cancelled.",
        ),
    ] = None,
    limit: Limit = 100,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List running and recently ended flows, newest first."""
    with open_queue(url, schema) as client:
        note_unknown_queue(client, queue)
        found = client.flows.list(queue=queue, state=cast("FlowState", state), limit=limit)
    if as_json:
        emit_all(found)
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(flow, now) for flow in found])
    if not found:
        looked = f" among the newest {found.looked}" if found.next else ""
        say(f"There are no {'such ' if queue or state else ''}flows{looked}.")


@app.command()
def show(
    flow_id: Id,
    limit: Limit = 1000,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show the nodes of a flow, their states and their parents."""
    with open_queue(url, schema) as client:
        flow = _existing(client, flow_id)
        nodes = client.flows.nodes(flow_id, limit=limit)
    if as_json:
        emit_all(nodes)
        return
    table(_NODES, [_node(node) for node in nodes])
    more = f"; the first {len(nodes)} are shown" if len(nodes) < flow.nodes else ""
    say(f"{_sentence(flow)}{more}")


@app.command()
def wait(
    flow_id: Id,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Give up after this many seconds.", min=0),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Wait until a flow no longer runs; exit code 1 unless it completed."""
    from laneway.errors import NotEnded

    with open_queue(url, schema) as client:
        _existing(client, flow_id)
        try:
            flow = client.flows.wait(flow_id, timeout)
        except NotEnded as error:
            say(f"laneway: {error}")
            raise typer.Exit(Code.FAILED) from None
    if as_json:
        emit(flow)
    say(_sentence(flow))
    if flow.state != "completed":
        raise typer.Exit(Code.FAILED)


@app.command()
def redrive(
    flow_id: Id,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Redrive the dead letters of a flow, so that it continues."""
    with open_queue(url, schema) as client:
        flow = _existing(client, flow_id)
        confirm(f"Redrive {flow.dead} dead letters of flow {flow.name!r}?", yes)
        count = acting(client).redrive_flow(flow_id)
        flow = client.flows.get(flow_id)
    if as_json:
        emit({"redriven": count})
    say(f"{count} put back. {_sentence(flow)}")


@app.command()
def cancel(
    flow_id: Id,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Cancel a flow: nothing more starts, dead letters are discarded."""
    with open_queue(url, schema) as client:
        flow = _existing(client, flow_id)
        open_nodes = flow.held + flow.live + flow.dead
        confirm(f"Cancel flow {flow.name!r}, of which {open_nodes} nodes have not ended?", yes)
        flow = acting(client).cancel_flow(flow_id)
    if as_json:
        emit(flow)
    say(_sentence(flow))


def _existing(client: "Queue", flow_id: int) -> "FlowInfo":
    from laneway.errors import FlowMissing

    try:
        return client.flows.get(flow_id)
    except FlowMissing as error:
        say(f"laneway: {error}")
        raise typer.Exit(Code.NOTHING) from None


def _row(flow: "FlowInfo", now: datetime) -> tuple[object, ...]:
    done = flow.completed + flow.failed + flow.skipped
    begun = age(flow.created_at, now)
    return flow.id, flow.queue, flow.name, flow.state, done, flow.nodes, flow.dead, begun


def _node(node: "NodeInfo") -> tuple[object, ...]:
    after = ", ".join(str(parent) for parent in node.parents[:_FEW])
    if len(node.parents) > _FEW:
        after += f" and {len(node.parents) - _FEW} more"
    return node.id, node.kind, node.channel, node.state, node.when if node.parents else "", after


def _sentence(flow: "FlowInfo") -> str:
    parts = {
        "completed": flow.completed,
        "running or waiting": flow.live,
        "held": flow.held,
        "dead": flow.dead,
        "failed": flow.failed,
        "skipped": flow.skipped,
    }
    counts = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
    return f"Flow {flow.id} ({flow.name}) is {flow.state}: {counts}"
