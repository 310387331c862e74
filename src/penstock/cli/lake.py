"""lake: the history as Parquet; sync, verify, compact, purge, status, report, synth."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from .confirm import confirm
from .connect import settled
from .exits import Code, Commands
from .options import Json, Schema, Url, Yes
from .output import Column, emit, emit_all, fields, say, table
from .times import ago, length, moment

if TYPE_CHECKING:
    from penstock.lake import Lake

app = typer.Typer(
    cls=Commands,
    help="The history as Parquet files, and reports over it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Root = Annotated[
    str, typer.Option("--lake", "-l", envvar="PENSTOCK_LAKE", help="The lake's folder, or a URI.")
]
Name = Annotated[str, typer.Option(help="Which of the queue's lakes.")]
Rows = Annotated[int, typer.Option(help="Rows a batch, at most.", min=1, max=10_000_000)]


@app.command()
def sync(
    lake: Root,
    batch_rows: Rows = 100_000,
    name: Name = "lake",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Write what has ended into the lake; again and again, it goes on where it was."""
    done = _open(lake, name, url, schema).sync(batch_rows)
    if as_json:
        emit(asdict(done))
    else:
        say(f"{done.rows:,} rows in {done.batches} batches.")


@app.command()
def verify(
    lake: Root,
    name: Name = "lake",
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was verified before.")
    ] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Read the files back and compare them with the history."""
    done = _open(lake, name, url, schema).verify(everything)
    if as_json:
        emit(asdict(done))
    for damage in done.damaged:
        say(f"{damage.path}: {damage.problem}")
    if done.again:
        say(f"Batches {done.again} are written again by the next penstock lake sync.")
    if done.lost:
        say(f"Batches {done.lost} cannot be: their rows are no longer in the history.")
    say(f"{done.batches} batches in {done.files} files, {len(done.damaged)} damaged.")
    if done.damaged or done.again or done.lost:
        raise typer.Exit(Code.FAILED)


@app.command()
def compact(
    lake: Root,
    name: Name = "lake",
    older: Annotated[str, typer.Option(help="Days that ended so long ago.")] = "2d",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Make one file of the many of each old day."""
    done = _open(lake, name, url, schema).compact(ago(older))
    if as_json:
        emit(asdict(done))
    else:
        say(f"{done.files} files of {done.days} days are {done.days} now.")


@app.command()
def purge(
    lake: Root,
    name: Name = "lake",
    keep: Annotated[str, typer.Option(help="What ended in this time stays.")] = "30d",
    dry_run: Annotated[
        bool, typer.Option(help="Only say what would go, and what stays why.")
    ] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Drop days of history that the lake holds for certain."""
    opened = _open(lake, name, url, schema)
    kept = ago(keep)
    if not dry_run:
        confirm(f"Drop verified history older than {keep}?", yes)
    days = opened.purge(kept, dry_run=dry_run)
    if as_json:
        emit_all(days)
        return
    columns = (
        Column("day"),
        Column("rows", right=True),
        Column("goes" if dry_run else "gone"),
        Column("why not"),
    )
    table(columns, [(d.day, d.rows, "yes" if d.stays is None else "no", d.stays) for d in days])


@app.command()
def status(
    lake: Root, name: Name = "lake", url: Url = None, schema: Schema = None, as_json: Json = False
) -> None:
    """How far the lake is behind, and what it holds."""
    found = _open(lake, name, url, schema).status()
    if as_json:
        emit(asdict(found))
        return
    states = ", ".join(f"{count} {state}" for state, count in found.batches.items())
    fields(
        {
            "rows": f"{found.rows:,} in {found.files} files, {found.bytes / 1e6:,.1f} MB",
            "days": f"{found.first_day} to {found.last_day}" if found.files else "none",
            "batches": states or "none",
            "behind": f"{found.behind:,} rows"
            + (f", {found.unsettled:,} not settled" if found.unsettled else ""),
            "readers": ", ".join(found.readers),
        }
    )
    if found.kept != "all":
        say(f"The queue keeps {found.kept} of its history: reports will know only that.")


@app.command()
def report(
    lake: Root,
    objective: Annotated[str, typer.Option(help="Messages start within this time …")] = "60s",
    share: Annotated[float, typer.Option(help="… in this share of all cases.")] = 0.99,
    as_json: Json = False,
) -> None:
    """Compute the tables of the days that changed, and one page to look at. Needs no database."""
    from penstock.lake.settings import Objective

    made = _open_folder(lake).report(Objective(length(objective), share))
    if as_json:
        emit(asdict(made))
    else:
        say(f"{made.days} days computed.")
        typer.echo(made.page)


@app.command()
def synth(
    lake: Annotated[str | None, typer.Option("--lake", "-l", help="Into this lake …")] = None,
    messages: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000_000,
    days: Annotated[float, typer.Option(min=0.05)] = 14,
    seed: Annotated[int, typer.Option(help="The same seed, the same history.")] = 1,
    until: Annotated[str | None, typer.Option(help="When it ends.  [default: now]")] = None,
    calm: Annotated[bool, typer.Option("--calm", help="Without incidents.")] = False,
    url: Annotated[str | None, typer.Option(help="… or into this queue's history.")] = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Make up a history, to try reports on; only into an empty lake or an empty history."""
    if (lake is None) == (url is None):
        raise typer.BadParameter("say where: --lake or --url", param_hint="--lake")
    from penstock.lake.synth import tell
    from penstock.lake.synth.writing import write_database, write_lake

    say(f"making up {messages:,} messages of {days:g} days")
    end = moment(until) if until else datetime.now(UTC)
    story = tell(messages, until=end, days=days, seed=seed, calm=calm)
    if lake is not None:
        write_lake(story, _open_folder(lake).folder)
    else:
        write_database(story, _open("", "lake", url, schema).books)
    if as_json:
        emit({"messages": messages, "rows": story.history.num_rows})
    else:
        say(f"{story.history.num_rows:,} rows of {messages:,} messages.")


def _open(root: str, name: str, url: str | None, schema: str | None) -> "Lake":
    from penstock.lake import Lake

    config = settled(url, schema)
    return Lake(config.url, root, schema=config.schema, name=name, say=say)


def _open_folder(root: str) -> "Lake":
    from penstock.lake import Lake

    return Lake(None, root, say=say)
