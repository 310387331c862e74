"""dead: list, show, group, redrive, discard dead letters."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, no_match
from laneway.cli.exits import Code, ListGroup
from laneway.cli.options import (
    Json,
    Limit,
    OnlyChannel,
    OnlyKind,
    OnlyQueue,
    Schema,
    Url,
    Yes,
    age,
    clock,
    length,
    past,
)
from laneway.cli.output import Column, emit, emit_all, fields, printable, say, table

if TYPE_CHECKING:
    from laneway import DeadLetter, Queue
    from laneway.inspection import DeadLetterGroup, MessageInfo
    from laneway.operations import Operation

app = typer.Typer(
    cls=ListGroup, help="List, show, redrive and discard dead letters.", rich_markup_mode=None
)

_MOST_COUNTED = 100_000
_PREVIEW = 5
_VERBS = {"redrive": "Redrive", "discard": "Delete for good"}
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = (
    Column("id", right=True),
    Column("queue", wide=100),
    Column("channel"),
    Column("kind"),
    Column("try", right=True, wide=90),
    Column("died", right=True),
    Column("reason"),
    Column("error"),
)

_GROUP_COLUMNS = (
    Column("count", right=True),
    Column("queue", wide=100),
    Column("kind"),
    Column("reason", wide=90),
    Column("error"),
    Column("oldest", right=True),
    Column("newest", right=True),
    Column("example", right=True),
)

Ids = Annotated[
    list[int] | None, typer.Argument(help="Ids of dead letters; or use filters.", min=1)
]
OnlyReason = Annotated[
    str | None, typer.Option("--reason", "-r", help="Only with this reason.", show_default=False)
]
OnlyError = Annotated[
    str | None,
    typer.Option("--error-type", help="Only with this error type.", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Only dead letters since this time: 2h (ago) or a timestamp.", show_default=False
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        help="Only dead letters before this time: 2h (ago) or a timestamp.", show_default=False
    ),
]
All = Annotated[bool, typer.Option("--all", help="All dead letters of the schema.")]


Wait = Annotated[
    bool,
    typer.Option(
        "--wait/--background",
        help="Wait until it is done, or leave it to the workers' maintenance.",
    ),
]


class Chosen(NamedTuple):
    """The selection, as the client takes it."""

    ids: list[int] | None
    by: dict[str, Any]


@app.command("list")
def list_dead(
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    error_type: OnlyError = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List dead letters, newest first."""
    chosen = _chosen(None, queue, channel, kind, reason, error_type, since, until, True)
    with open_queue(url, schema) as client:
        letters = client.dead_letters.list(**chosen.by, limit=limit)
        empty = None if letters else no_match(client, "dead letter", queue)
    if as_json:
        emit_all(_without_payload(letter) for letter in letters)
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(letter, now) for letter in letters])
    if letters.next is None:
        if empty:
            say(empty)
    elif len(letters) == limit:
        say("There may be more: raise --limit, or use --until.")
    else:
        # Others may have died at the same time.
        until_then = letters.next.died_at + timedelta(microseconds=1)
        say(f"Searched the newest ones only: go on with --until {until_then.isoformat()}")


@app.command("show")
def show_dead(
    message_id: Annotated[int, typer.Argument(metavar="ID", help="The dead letter's id.", min=1)],
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show why a message failed for good, with its traceback."""
    with open_queue(url, schema) as client:
        info = client.message(message_id)
    if info is None or info.state != "dead":
        say(f"There is no dead letter {message_id}.")
        raise typer.Exit(Code.NOTHING)
    if as_json:
        emit(info)
        return
    error = f"{info.error_type}: {info.error}" if info.error_type else info.error
    fields(
        {
            "id": info.id,
            "queue": info.queue,
            "channel": info.channel,
            "kind": info.kind,
            "tries": f"{info.attempt} of {info.max_attempts}",
            "published": clock(info.published_at),
            "died": clock(info.died_at),
            "reason": info.reason,
            "error": error,
        }
    )
    for line in (info.traceback or "").splitlines():
        typer.echo(printable(line))


@app.command()
def groups(
    queue: OnlyQueue = None,
    limit: Limit = 50,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Group dead letters by kind and error, the largest groups first."""
    with open_queue(url, schema) as client:
        found = client.dead_letters.groups(queue=queue, limit=limit)
        empty = None if found.groups else no_match(client, "dead letter", queue)
    if as_json:
        emit_all(found.groups)
    else:
        now = datetime.now(UTC)
        table(_GROUP_COLUMNS, [_group_row(group, now) for group in found.groups])
    if empty:
        say(empty)
    elif not found.complete:
        say(f"There are more: these are the newest {found.looked:,}.")


@app.command()
def redrive(
    ids: Ids = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    error_type: OnlyError = None,
    since: Since = None,
    until: Until = None,
    everything: All = False,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, help="New maximum number of attempts.", show_default=False)
    ] = None,
    delay: Annotated[
        str, typer.Option(metavar="DURATION", help="Delay before the messages become due, e.g. 5m.")
    ] = "0s",
    spark: Annotated[
        bool, typer.Option("--spark", help="Select and redrive with Spark, for large numbers.")
    ] = False,
    where: Annotated[
        str | None,
        typer.Option(
            help="With --spark: an SQL condition, e.g. error like '%timeout%'.", show_default=False
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="With --spark: max redrives per second and channel.", show_default=False),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="With --spark: the Spark master; local by default.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    wait: Wait = True,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Retry dead letters; shows them and asks first."""
    everything = everything or where is not None
    chosen = _chosen(ids, queue, channel, kind, reason, error_type, since, until, everything)
    delayed = length(delay)
    if spark:
        from laneway.cli.on_spark import redrive_by_spark

        if chosen.ids:
            raise typer.BadParameter(
                "--spark works with filters only: leave it out to redrive by id"
            )
        words = (chosen.by, where, rate, max_attempts, delayed, master)
        done = redrive_by_spark(*words, dry_run, yes, url, schema, as_json)
        _report("redriven", done, as_json)
        return
    if where is not None or rate is not None:
        raise typer.BadParameter("--where and --rate need --spark")
    with _previewed(chosen, "redrive", dry_run, yes, url, schema, as_json) as client:
        operator = acting(client)
        if chosen.ids is not None:
            done = operator.redrive(chosen.ids, max_attempts=max_attempts, delay=delayed)
        else:
            started = operator.start_redrive(**chosen.by, max_attempts=max_attempts, delay=delayed)
            if not wait:
                _started(started, as_json)
                return
            done = operator.run_operation(started.id).done
    _report("redriven", done, as_json)


@app.command()
def discard(
    ids: Ids = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    error_type: OnlyError = None,
    since: Since = None,
    until: Until = None,
    everything: All = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    wait: Wait = True,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Delete dead letters for good; shows them and asks first."""
    chosen = _chosen(ids, queue, channel, kind, reason, error_type, since, until, everything)
    with _previewed(chosen, "discard", dry_run, yes, url, schema, as_json) as client:
        operator = acting(client)
        if chosen.ids is not None:
            done = operator.discard(chosen.ids)
        else:
            started = operator.start_discard(**chosen.by)
            if not wait:
                _started(started, as_json)
                return
            # As upkeep does: its start was checked and is in the audit.
            done = client.operations.run(started.id).done
    _report("discarded", done, as_json)


def _chosen(
    ids: list[int] | None,
    queue: str | None,
    channel: str | None,
    kind: str | None,
    reason: str | None,
    error_type: str | None,
    since: str | None,
    until: str | None,
    everything: bool,
) -> Chosen:
    by: dict[str, Any] = {
        "queue": queue,
        "channel": channel,
        "kind": kind,
        "reason": reason,
        "error_type": error_type,
        "since": None if since is None else past(since),
        "until": None if until is None else past(until),
    }
    by = {name: value for name, value in by.items() if value is not None}
    if everything and not by and not ids:
        by = {"since": _FIRST}
    elif not ids and not by:
        raise typer.BadParameter(
            "which dead letters? Give ids, filters such as --queue emails, or --all"
        )
    elif ids and (by or everything):
        raise typer.BadParameter("give ids or filters, not both")
    return Chosen(ids or None, by)


def _group_row(group: "DeadLetterGroup", now: datetime) -> tuple[object, ...]:
    kind, text = group.error_type, group.text
    error = f"{kind}: {text}" if kind and text else kind or text
    names = (group.queue, group.kind, group.reason, error)
    return (group.count, *names, age(group.oldest, now), age(group.newest, now), group.example)


@contextmanager
def _previewed(
    chosen: Chosen,
    verb: str,
    dry_run: bool,
    yes: bool,
    url: str | None,
    schema: str | None,
    as_json: bool,
) -> Iterator["Queue"]:
    """Shows how many there are and the first of them, and asks."""
    with open_queue(url, schema) as client:
        count = client.dead_letters.count(chosen.ids, **chosen.by, limit=_MOST_COUNTED)
        if not count and not count.or_more:
            empty = no_match(client, "dead letter", chosen.by.get("queue"))
            say(f"{empty} Nothing to {verb}.")
            raise typer.Exit(Code.NOTHING)
        or_more = count.or_more
        many = f"{count:,}" + (" or more" if or_more else "")
        for line in _preview(client, chosen):
            say(line)
        if count > _PREVIEW:
            say(f"… {many} in total")
        if dry_run:
            if as_json:
                emit({f"would_{verb}": count, "or_more": or_more})
            say(f"Would {verb} {many}.")
            raise typer.Exit(Code.OK)
        confirm(f"{_VERBS[verb]}: {many} dead letter{'s' if count > 1 else ''}?", yes)
        yield client


def _preview(client: "Queue", chosen: Chosen) -> Iterator[str]:
    now = datetime.now(UTC)
    if chosen.ids is None:
        for letter in client.dead_letters.list(**chosen.by, limit=_PREVIEW):
            yield _preview_line(letter, now)
        return
    for id in chosen.ids[:_PREVIEW]:
        info = client.message(id)
        dead = info is not None and info.state == "dead"
        yield _preview_line(info, now) if info and dead else f"  {id}  is not a dead letter"


def _preview_line(letter: "DeadLetter | MessageInfo", now: datetime) -> str:
    where = f"{letter.queue}/{letter.channel}"
    died = age(letter.died_at, now)
    return printable(f"  {letter.id}  {where}  died {died} ago: {letter.reason}")


def _started(operation: "Operation", as_json: bool) -> None:
    if as_json:
        emit(operation)
    many = "all" if operation.total is None else f"{operation.total:,}"
    say(f"Operation {operation.id} began: {operation.action} of {many} dead letters.")


def _report(word: str, done: int, as_json: bool) -> None:
    if as_json:
        emit({word: done})
    say(f"{done:,} {word}.")


def _without_payload(letter: "DeadLetter") -> dict[str, Any]:
    """``show`` has the payload, one at a time."""
    values = asdict(letter)
    values["payload_size"] = len(values.pop("payload"))
    return values


def _row(letter: "DeadLetter", now: datetime) -> tuple[object, ...]:
    error = f"{letter.error_type or ''} {letter.error or ''}".strip()
    return (
        letter.id,
        letter.queue,
        letter.channel,
        letter.kind,
        letter.attempt,
        age(letter.died_at, now),
        letter.reason,
        error,
    )
