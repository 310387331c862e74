"""channels: list, limit, pause, resume, remove."""

from dataclasses import fields
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, no_match, note_unused_channels
from laneway.cli.exits import ListGroup
from laneway.cli.options import (
    For,
    InQueue,
    Json,
    Limit,
    OnlyQueue,
    Schema,
    Url,
    Urls,
    Yes,
    age,
    length,
)
from laneway.cli.output import Column, by_database, emit, emit_all, say, table
from laneway.cli.sources import Source, ended, look_at_all, sources

from .stats import counts

if TYPE_CHECKING:
    from laneway import Policy, Queue
    from laneway.inspection import ChannelInfo, ChannelPage


app = typer.Typer(
    cls=ListGroup, help="List, limit, pause, resume and remove channels.", rich_markup_mode=None
)

_COLUMNS = (
    Column("queue"),
    Column("channel"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=90),
    Column("leased", right=True),
    Column("dead", right=True, wide=70),
    Column("oldest", right=True),
    Column("waits for", wide=80),
    Column("limits"),
)

Names = Annotated[list[str], typer.Argument(metavar="CHANNEL...", help="The channels' names.")]


def _number(what: str) -> Any:
    return typer.Option(help=f"{what}, or none for no limit.", show_default=False)


@app.command("list")
def list_channels(
    queue: OnlyQueue = None,
    paused: Annotated[
        bool | None, typer.Option(help="Only paused channels, or only those that are not paused.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Only names with this prefix.", show_default=False)
    ] = None,
    limited: Annotated[
        bool | None, typer.Option(help="Only channels with limits, or only those without.")
    ] = None,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option(help="Continue from this position.", show_default=False)
    ] = None,
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List channels with message counts and limits, fullest first."""
    found = sources(url, schema)
    if after is not None and len(found) > 1:
        raise typer.BadParameter("--after is a position in one database: name one with --url")

    def look(client: "Queue") -> "tuple[ChannelPage, str | None]":
        page = client.channels(
            queue=queue, prefix=prefix, paused=paused, limited=limited, limit=limit, after=after
        )
        return page, None if page else no_match(client, "channel", queue)

    answers = look_at_all(found, look)
    rows = [(source, info) for source, (page, _) in answers for info in page]
    if len(found) > 1:
        rows.sort(key=lambda row: -row[1].stats.waiting)
    if as_json:
        emit_all(info if source.name is None else _named(source, info) for source, info in rows)
    else:
        now = datetime.now(UTC)
        table(*by_database(_COLUMNS, [(source, _row(info, now)) for source, info in rows]))
    filtered = (queue, prefix, paused, limited) != (None,) * 4
    for source, (page, empty) in answers:
        if page.next is not None:
            of = "" if source.name is None else f" in {source.name}, alone with --url"
            say(f"There are more{of}: continue with --after {quote(page.next)}")
        elif empty and not rows:
            say(empty if filtered else "No channel has messages or limits.")
            break
    ended(found, answers)


def _named(source: Source, info: "ChannelInfo") -> dict[str, Any]:
    return source.of({each.name: getattr(info, each.name) for each in fields(info)})


@app.command()
def limit(
    name: Annotated[str, typer.Argument(metavar="CHANNEL", help="The channel's name.")],
    concurrency: Annotated[str | None, _number("Messages that may run at once")] = None,
    rate: Annotated[str | None, _number("Starts per second")] = None,
    burst: Annotated[str | None, _number("Starts that may be saved up; needs a rate")] = None,
    backlog: Annotated[str | None, _number("Messages that may wait")] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="Share relative to other channels; 1 by default.", show_default=False),
    ] = None,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Change limits of a channel; the others stay as they are.

    "none" removes a limit.
    """
    changes = _changes(concurrency, rate, burst, backlog, weight)
    if not changes:
        raise typer.BadParameter(
            "no limit was given: use --concurrency, --rate, --burst, --backlog or --weight"
        )
    for option in ("concurrency", "rate"):
        if changes.get(option) == 0:
            raise typer.BadParameter(
                f"--{option} 0 would start nothing: use laneway channels pause, or --{option} none "
                "to remove the limit"
            )
    with open_queue(url, schema, queue) as client:
        note_unused_channels(client, [name])
        before = client.channel(name).policy()
        now = acting(client).limit(name, **changes)
    if as_json:
        emit(now)
    else:
        say(f"{name}: {limits(before) or 'unlimited'} → {limits(now) or 'unlimited'}")


@app.command()
def pause(
    names: Names,
    for_: For = None,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Pause channels; publishing to them still works."""
    duration = None if for_ is None else length(for_)
    with open_queue(url, schema, queue) as client:
        note_unused_channels(client, names)
        for name in names:
            acting(client).pause_channel(name, duration=duration)
    if as_json:
        emit_all(_state(client.name, name, paused=True) for name in names)
    say(f"Paused in queue {client.name!r}: {', '.join(names)}.")


@app.command()
def resume(
    names: Names,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Resume paused channels."""
    with open_queue(url, schema, queue) as client:
        note_unused_channels(client, names)
        for name in names:
            acting(client).resume_channel(name)
    if as_json:
        emit_all(_state(client.name, name, paused=False) for name in names)
    say(f"Resumed in queue {client.name!r}: {', '.join(names)}.")


@app.command()
def remove(
    names: Names,
    yes: Yes = False,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Refuse new messages, and remove the channels once they are empty."""
    with open_queue(url, schema, queue) as client:
        note_unused_channels(client, names)
        for name in names:
            stats = client.channel(name).stats()
            left = stats.waiting + stats.scheduled + stats.leased
            say(f"{name}: {left:,} messages left")
        confirm(f"Remove these channels of queue {client.name!r} once they are empty?", yes)
        for name in names:
            acting(client).remove_channel(name)
    if as_json:
        emit_all(_state(client.name, name, closing=True) for name in names)
    say(f"Closing in queue {client.name!r}: {', '.join(names)}.")


def limits(policy: "Policy") -> str:
    """A policy in a few words; empty for the default one."""
    rate = None if policy.rate is None else f"{policy.rate:g}/s burst {policy.burst}"
    words = [
        _paused(policy),
        "closing" if policy.closing else None,
        None if policy.concurrency is None else f"concurrency {policy.concurrency}",
        rate,
        None if policy.backlog is None else f"backlog {policy.backlog}",
        None if policy.weight == 1 else f"weight {policy.weight:g}",
    ]
    return ", ".join(word for word in words if word)


def _paused(policy: "Policy") -> str | None:
    if not policy.paused:
        return None
    return "throttled" if policy.throttled else "paused"


def _state(queue: str, name: str, **state: bool) -> dict[str, object]:
    return {"queue": queue, "channel": name, **state}


def _row(info: "ChannelInfo", now: datetime) -> tuple[object, ...]:
    n = info.stats
    numbers = counts(n.exact, None, n.waiting, n.scheduled, n.leased, n.dead)
    oldest = age(n.oldest_due, now)
    return info.queue, info.channel, *numbers, oldest, info.waits_for, limits(info.policy)


def _changes(
    concurrency: str | None,
    rate: str | None,
    burst: str | None,
    backlog: str | None,
    weight: float | None,
) -> dict[str, Any]:
    """What is named: a number, or None for "none"."""
    texts = {"concurrency": concurrency, "rate": rate, "burst": burst, "backlog": backlog}
    named: dict[str, Any] = {
        name: None if text == "none" else _read(name, text)
        for name, text in texts.items()
        if text is not None
    }
    if weight is not None:
        named["weight"] = weight
    return named


def _read(name: str, text: str) -> float:
    try:
        return float(text) if name == "rate" else int(text)
    except ValueError:
        what = "a number" if name == "rate" else "a whole number"
        raise typer.BadParameter(
            f"{text!r} is not {what}: write digits, or none", param_hint=f"--{name}"
        ) from None
