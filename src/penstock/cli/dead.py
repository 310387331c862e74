"""dead: list, redrive, discard dead letters."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .confirm import confirm
from .connect import open_queue
from .exits import Code, Nouns
from .options import Json, Limit, OnlyChannel, OnlyKind, OnlyQueue, Schema, Url, Yes
from .output import Column, emit, emit_all, printable, say, table
from .times import age, length, past

if TYPE_CHECKING:
    from penstock import DeadLetter, MessageInfo, Queue

app = typer.Typer(cls=Nouns, help="Dead letters: list, redrive, discard.", rich_markup_mode=None)

_MOST_COUNTED = 100_000
_PREVIEW = 5
_VERBS = {"redrive": "Redrive", "discard": "Discard for good"}
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

Ids = Annotated[list[int] | None, typer.Argument(help="Which; or say it by filters.", min=1)]
OnlyReason = Annotated[
    str | None, typer.Option("--reason", "-r", help="Only for this reason.", show_default=False)
]
Since = Annotated[
    str | None, typer.Option(help="Died since then: 2h (ago), or a time.", show_default=False)
]
Until = Annotated[str | None, typer.Option(help="Died before then.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Every dead letter of the schema.")]


class Chosen(NamedTuple):
    """The words of the command, as the library takes them."""

    ids: list[int] | None
    by: dict[str, Any]


@app.command("list")
def list_dead(
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List dead letters, oldest first."""
    chosen = _chosen(None, queue, channel, kind, reason, since, until, True)
    with open_queue(url, schema) as client:
        letters = client.dead_letters.list(**chosen.by, limit=limit)
    if as_json:
        emit_all(_without_payload(letter) for letter in letters)
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(letter, now) for letter in letters])
    if not letters:
        say("No dead letter matches.")
    elif len(letters) == limit:
        say("There may be more: a larger --limit, or --since, shows them.")


@app.command()
def redrive(
    ids: Ids = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    since: Since = None,
    until: Until = None,
    everything: All = False,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, help="A new budget of tries.", show_default=False)
    ] = None,
    delay: Annotated[str, typer.Option(help="Not before so long: 5m.")] = "0s",
    spark: Annotated[
        bool, typer.Option("--spark", help="Choose and redrive by Spark, for large numbers.")
    ] = False,
    where: Annotated[
        str | None,
        typer.Option(help="With --spark: a condition, error like '%timeout%'", show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="With --spark: a second in each channel.", show_default=False),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="With --spark: where; else here.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Let dead letters wait again; shows which and asks."""
    everything = everything or where is not None
    chosen = _chosen(ids, queue, channel, kind, reason, since, until, everything)
    wait = length(delay)
    if spark:
        from .spark_redrive import redrive_by_spark

        if chosen.ids:
            raise typer.BadParameter("--spark is for filters: leave it out to redrive by ids")
        words = (chosen.by, where, rate, max_attempts, wait, master)
        done = redrive_by_spark(*words, dry_run, yes, url, schema, as_json)
        _report("redriven", done, as_json)
        return
    if where is not None or rate is not None:
        raise typer.BadParameter("--where and --rate need --spark")
    with _previewed(chosen, "redrive", dry_run, yes, url, schema, as_json) as client:
        done = client.dead_letters.redrive(
            chosen.ids, **chosen.by, max_attempts=max_attempts, delay=wait
        )
    _report("redriven", done, as_json)


@app.command()
def discard(
    ids: Ids = None,
    queue: OnlyQueue = None,
    channel: OnlyChannel = None,
    kind: OnlyKind = None,
    reason: OnlyReason = None,
    since: Since = None,
    until: Until = None,
    everything: All = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """End dead letters for good; shows which and asks."""
    chosen = _chosen(ids, queue, channel, kind, reason, since, until, everything)
    with _previewed(chosen, "discard", dry_run, yes, url, schema, as_json) as client:
        done = client.dead_letters.discard(chosen.ids, **chosen.by)
    _report("discarded", done, as_json)


def _chosen(
    ids: list[int] | None,
    queue: str | None,
    channel: str | None,
    kind: str | None,
    reason: str | None,
    since: str | None,
    until: str | None,
    everything: bool,
) -> Chosen:
    by: dict[str, Any] = {
        "queue": queue,
        "channel": channel,
        "kind": kind,
        "reason": reason,
        "since": None if since is None else past(since),
        "until": None if until is None else past(until),
    }
    by = {name: value for name, value in by.items() if value is not None}
    if everything and not by and not ids:
        by = {"since": _FIRST}
    elif not ids and not by:
        raise typer.BadParameter("say which dead letters: ids, filters, or --all")
    elif ids and (by or everything):
        raise typer.BadParameter("ids and filters exclude each other")
    return Chosen(ids or None, by)


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
    """Shows how many and the first of them, and goes on only if somebody agreed."""
    with open_queue(url, schema) as client:
        count = client.dead_letters.count(chosen.ids, **chosen.by, most=_MOST_COUNTED)
        if not count:
            say("No dead letter matches.")
            raise typer.Exit(Code.NOTHING)
        or_more = count == _MOST_COUNTED
        many = f"{count:,}" + (" or more" if or_more else "")
        for line in _preview(client, chosen):
            say(line)
        if count > _PREVIEW:
            say(f"… {many} in all")
        if dry_run:
            if as_json:
                emit({f"would_{verb}": count, "or_more": or_more})
            say(f"{_VERBS[verb]}: would take {many}.")
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
        yield _preview_line(info, now) if info and dead else f"  {id}  is no dead letter"


def _preview_line(letter: "DeadLetter | MessageInfo", now: datetime) -> str:
    where = f"{letter.queue}/{letter.channel}"
    died = age(letter.died_at, now)
    return printable(f"  {letter.id}  {where}  died {died} ago: {letter.reason}")


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
