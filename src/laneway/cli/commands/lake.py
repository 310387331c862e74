"""lake: the history as Parquet; sync, verify, compact, purge, erase, iceberg, status, streams,
report, synth."""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from laneway.cli.connect import settled, user_name
from laneway.cli.dialog import confirm
from laneway.cli.exits import Code, CommandGroup
from laneway.cli.options import Json, OnlyQueue, Schema, Url, Urls, Yes, ago, length, moment
from laneway.cli.output import Column, emit, emit_all, fields, say, table
from laneway.cli.sources import Source, sources
from laneway.errors import ConnectionUnavailable

if TYPE_CHECKING:
    from laneway.lake import Lake
    from laneway.lake.lake import LakeStatus

T = TypeVar("T")
# Spark makes a column of it.
_FOLDER = "database="
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")

app = typer.Typer(
    cls=CommandGroup,
    help="Export the history as Parquet, and build reports on it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Root = Annotated[
    str, typer.Option("--lake", "-l", envvar="LANEWAY_LAKE", help="The lake's folder or URI.")
]
Name = Annotated[str, typer.Option(help="The lake's name, if there are several.")]
Rows = Annotated[int, typer.Option(help="Max rows per batch.", min=1, max=10_000_000)]


@app.command()
def sync(
    lake: Root,
    batch_rows: Rows = 100_000,
    name: Name = "lake",
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Export new history into the lake, from where the last sync ended.

    With several databases, each has its own folder: database=NAME.
    """
    for source, done in _each(lake, name, url, schema, lambda one: one.sync(batch_rows)):
        if as_json:
            emit(source.of(asdict(done)))
        else:
            say(f"{_of(source)}{done.rows:,} rows in {done.batches} batches.")


@app.command()
def verify(
    lake: Root,
    name: Name = "lake",
    everything: Annotated[
        bool, typer.Option("--all", help="Also batches that were verified before.")
    ] = False,
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Read the files back and compare them with the history."""
    failed = False
    for source, done in _each(lake, name, url, schema, lambda one: one.verify(everything)):
        of = _of(source)
        if as_json:
            emit(source.of(asdict(done)))
        for damage in done.damaged:
            say(f"{of}{damage.path}: {damage.problem}")
        if done.again:
            say(f"{of}The next laneway lake sync writes batches {done.again} again.")
        if done.lost:
            say(f"{of}Batches {done.lost} are lost: their rows are no longer in the history.")
        say(f"{of}{done.batches} batches in {done.files} files, {len(done.damaged)} damaged.")
        failed = failed or bool(done.damaged or done.again or done.lost)
    if failed:
        raise typer.Exit(Code.FAILED)


@app.command()
def compact(
    lake: Root,
    name: Name = "lake",
    older: Annotated[
        str, typer.Option(metavar="DURATION", help="Only days that ended this long ago.")
    ] = "2d",
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Merge the files of each old day into one."""
    for source, done in _each(lake, name, url, schema, lambda one: one.compact(ago(older))):
        if as_json:
            emit(source.of(asdict(done)))
        else:
            say(f"{_of(source)}Merged {done.files} files of {done.days} days into {done.days}.")


@app.command()
def purge(
    lake: Root,
    name: Name = "lake",
    keep: Annotated[
        str, typer.Option(metavar="DURATION", help="Keep history younger than this.")
    ] = "30d",
    dry_run: Annotated[
        bool, typer.Option(help="Only show what would be deleted, and what stays and why.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Do not wait for registered streams; they lose these rows."),
    ] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Delete history from the database that is verified in the lake."""
    opened = _open(lake, name, url, schema)
    kept = ago(keep)
    if not dry_run:
        read = ", also what registered streams have not read" if force else ""
        confirm(f"Delete verified history older than {keep}{read}?", yes)
    days = opened.purge(kept, dry_run=dry_run, force=force)
    if as_json:
        emit_all(days)
        return
    columns = (
        Column("day"),
        Column("rows", right=True),
        Column("would delete" if dry_run else "deleted"),
        Column("reason"),
    )
    table(columns, [(d.day, d.rows, "yes" if d.stays is None else "no", d.stays) for d in days])


@app.command()
def erase(
    lake: Root,
    channel: Annotated[str, typer.Option("--channel", "-c", help="The tenant's channel.")],
    queue: OnlyQueue = None,
    name: Name = "lake",
    dry_run: Annotated[bool, typer.Option(help="Only show what would be erased.")] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Erase a channel from database and lake, and verify it is gone."""
    opened = _open(lake, name, url, schema)
    found = opened.find_tenant(channel, queue=queue)
    where = f"{queue}/{channel}" if queue else f"{channel} of every queue"
    says = (
        f"{found.messages:,} messages, {found.dead_letters:,} dead letters, {found.history:,} rows "
        f"of history, {found.results:,} results; {found.lake_rows:,} rows in {found.files} files "
        "of the lake"
    )
    if dry_run:
        if as_json:
            emit(asdict(found))
        say(f"Would erase of channel {where}: {says}.")
        return
    confirm(f"Erase for good what there is of channel {where}: {says}?", yes)
    done = opened.erase(channel, queue=queue, actor=user_name())
    if as_json:
        emit(asdict(done))
        return
    fields(
        {
            "erased": f"{done.messages:,} messages, {done.dead_letters:,} dead letters, "
            f"{done.history:,} rows of history",
            "lake": f"{done.lake_rows:,} rows; {done.files_rewritten} files rewritten, "
            f"{done.files_removed} removed",
            "proof": f"{done.files_read} files and the database were read again: "
            f"{done.found_again} rows found",
        }
    )
    if done.tables:
        say(f"Erased from these tables too: {', '.join(done.tables)}.")
    if others := [
        *(f"stream {other}" for other in done.streams),
        *(f"lake {other}" for other in done.lakes),
    ]:
        say(f"These may have copies and were not touched: {', '.join(others)}.")


@app.command()
def iceberg(
    lake: Root,
    table: Annotated[str, typer.Option(help="The table: namespace.name.")],
    catalog: Annotated[str, typer.Option(help="The catalog's name in pyiceberg's settings.")] = (
        "default"
    ),
    sql: Annotated[
        bool, typer.Option("--sql", help="Only print statements, for a Spark that has Iceberg.")
    ] = False,
    name: Name = "lake",
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Append verified batches to an Apache Iceberg table, exactly once.

    With several databases, each has its own table, whose name ends in the database's.
    """

    def named(source: Source) -> str:
        return table if source.name is None else f"{table}_{source.name.replace('-', '_')}"

    if sql:
        for source, opened in _each(lake, name, url, schema, lambda one: one):
            for statement in opened.iceberg_sql(named(source)):
                typer.echo(f"{statement};")
        return
    for source, opened in _each(lake, name, url, schema, lambda one: one):
        done = opened.iceberg(named(source), catalog=catalog)
        if as_json:
            emit(source.of(asdict(done)))
        else:
            say(f"{_of(source)}{done.rows:,} rows in {done.batches} batches.")
            if done.waiting:
                say(f"{_of(source)}{done.waiting} batches wait for laneway lake verify.")


@app.command()
def status(
    lake: Root, name: Name = "lake", url: Urls = None, schema: Schema = None, as_json: Json = False
) -> None:
    """Show what the lake holds and how far it is behind."""
    for source, found in _each(lake, name, url, schema, lambda one: one.status()):
        if as_json:
            emit(source.of(asdict(found)))
        else:
            _show(source, found)


def _show(source: Source, found: "LakeStatus") -> None:
    states = ", ".join(f"{count} {state}" for state, count in found.batches.items())
    fields(
        {
            "database": source.name,
            "rows": f"{found.rows:,} in {found.files} files, {found.bytes / 1e6:,.1f} MB",
            "days": f"{found.first_day} to {found.last_day}" if found.files else "none",
            "batches": states or "none",
            "behind": f"{found.behind:,} rows"
            + (f", {found.unsettled:,} not settled" if found.unsettled else ""),
            "readers": ", ".join(found.readers),
        }
    )
    if found.kept != "all":
        say(
            f"{_of(source)}The queue keeps only {found.kept!r} of its history; reports cover only "
            "that."
        )


@app.command()
def streams(
    forget: Annotated[
        str | None,
        typer.Option(metavar="STREAM", help="Remove this stream: nothing is kept for it any more."),
    ] = None,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List registered history streams; purge and retention wait for them."""
    opened = _open("", "lake", url, schema)
    if forget is not None:
        confirm(f"Forget stream {forget}? What it has not read may then be deleted.", yes)
        if not opened.forget_stream(forget):
            say(f"No stream {forget} is registered.")
            raise typer.Exit(Code.NOTHING)
        say(f"Forgot stream {forget}.")
        return
    found = opened.streams()
    if as_json:
        emit_all([reader._asdict() for reader in found])
        return
    columns = (
        Column("stream"),
        Column("unread", right=True),
        Column("last seen"),
        Column("kept for it until"),
        Column("lost rows at"),
    )
    table(columns, [(r.name, r.unread, r.seen_at, r.waited_until, r.missed_at) for r in found])


@app.command()
def report(
    lake: Root,
    objective: Annotated[
        str, typer.Option(metavar="DURATION", help="Objective: messages start within this time.")
    ] = "60s",
    share: Annotated[
        float, typer.Option(help="Objective: share of messages that must start in time.")
    ] = 0.99,
    as_json: Json = False,
) -> None:
    """Update the report: tables of changed days and one HTML page. Needs no database.

    A lake of several databases gets a report for each of them.
    """
    from laneway.lake.report.tables import Objective

    for name, opened in _folders(lake):
        made = opened.report(Objective(length(objective), share))
        if as_json:
            emit(asdict(made) if name is None else {"database": name, **asdict(made)})
        else:
            say(f"{'' if name is None else f'{name}: '}Computed {made.days} days.")
            typer.echo(made.page)


@app.command()
def synth(
    lake: Annotated[str | None, typer.Option("--lake", "-l", help="Write into this lake.")] = None,
    messages: Annotated[int, typer.Option(min=1, help="Number of messages.")] = 1_000_000,
    days: Annotated[float, typer.Option(min=0.05, help="Number of days.")] = 14,
    seed: Annotated[int, typer.Option(help="The same seed makes the same history.")] = 1,
    until: Annotated[str | None, typer.Option(help="End of the history.  [default: now]")] = None,
    calm: Annotated[bool, typer.Option("--calm", help="Generate no incidents.")] = False,
    url: Annotated[str | None, typer.Option(help="Write into this database's history.")] = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Generate a synthetic history, in an empty lake or database."""
    if (lake is None) == (url is None):
        raise typer.BadParameter("give --lake or --url, one of them")
    from laneway.lake.synth import synthesize
    from laneway.lake.synth.history import write_database, write_lake

    say(f"Generating {messages:,} messages of {days:g} days.")
    end = moment(until) if until else datetime.now(UTC)
    story = synthesize(messages, until=end, days=days, seed=seed, calm=calm)
    if lake is not None:
        write_lake(story, _open_folder(lake).folder)
    else:
        write_database(story, _open("", "lake", url, schema).catalog)
    if as_json:
        emit({"messages": messages, "rows": story.history.num_rows})
    else:
        say(f"{story.history.num_rows:,} rows of {messages:,} messages.")


def _open(root: str, name: str, url: str | None, schema: str | None) -> "Lake":
    from laneway.lake import Lake

    config = settled(url, schema)
    return Lake(config.url, root, schema=config.schema, name=name, say=say)


def _each(
    root: str,
    name: str,
    urls: list[str] | None,
    schema: str | None,
    work: "Callable[[Lake], T]",
) -> Iterator[tuple[Source, T]]:
    """One database after the other; one that is away does not keep the others from it."""
    from laneway.lake import Lake

    away = False
    for source in sources(urls, schema):
        config = source.config
        folder = root if source.name is None else f"{root.rstrip('/')}/{_FOLDER}{source.name}"
        if source.name is not None and not _PLAIN.fullmatch(source.name):
            raise typer.BadParameter(
                f"{source.name!r} cannot name a folder: give a short name, --url NAME=URL"
            )
        opened = Lake(config.url, folder, schema=config.schema, name=name, say=say)
        try:
            done = work(opened)
        except ConnectionUnavailable as error:
            if source.name is None:
                raise
            say(f"laneway: {source.name} is away: {error}")
            away = True
            continue
        yield source, done
    if away:
        raise typer.Exit(Code.FAILED)


def _of(source: Source) -> str:
    return "" if source.name is None else f"{source.name}: "


def _folders(root: str) -> "list[tuple[str | None, Lake]]":
    """The lake, or the lakes in it."""
    whole = _open_folder(root)
    names = [name for name in whole.folder.names("") if name.startswith(_FOLDER)]
    if not names:
        return [(None, whole)]
    return [
        (name.removeprefix(_FOLDER), _open_folder(f"{root.rstrip('/')}/{name}")) for name in names
    ]


def _open_folder(root: str) -> "Lake":
    from laneway.lake import Lake

    return Lake(None, root, say=say)
