"""channels: list, limit, pause, resume, remove."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .confirm import confirm
from .connect import open_queue
from .exits import Nouns
from .options import InQueue, Json, Limit, OnlyQueue, Schema, Url, Yes
from .output import Column, emit, emit_all, say, table
from .times import age

if TYPE_CHECKING:
    from penstock import ChannelInfo, Policy

N = TypeVar("N", int, float)

app = typer.Typer(
    cls=Nouns, help="Channels: list, limit, pause, resume, remove.", rich_markup_mode=None
)

_COLUMNS = (
    Column("queue"),
    Column("channel"),
    Column("waiting", right=True),
    Column("scheduled", right=True, wide=90),
    Column("leased", right=True),
    Column("dead", right=True, wide=70),
    Column("oldest", right=True),
    Column("limits"),
)

Names = Annotated[list[str], typer.Argument(metavar="CHANNEL...", help="Names of channels.")]
Number = Annotated[str | None, typer.Option(help="A number, or none.", show_default=False)]


@app.command("list")
def list_channels(
    queue: OnlyQueue = None,
    paused: Annotated[bool | None, typer.Option(help="Only paused ones, or the others.")] = None,
    limit: Limit = 50,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List channels with numbers and limits, the fullest first."""
    with open_queue(url, schema) as client:
        found = client.channels(queue=queue, paused=paused, limit=limit)
    if as_json:
        emit_all(found)
    else:
        now = datetime.now(UTC)
        table(_COLUMNS, [_row(info, now) for info in found])
    if not found:
        say("No channel holds anything or has limits.")
    elif len(found) == limit:
        say("There may be more: a larger --limit shows them.")


@app.command()
def limit(
    name: Annotated[str, typer.Argument(metavar="CHANNEL")],
    concurrency: Number = None,
    rate: Annotated[
        str | None, typer.Option(help="Starts per second, or none.", show_default=False)
    ] = None,
    burst: Number = None,
    backlog: Number = None,
    weight: Annotated[
        float | None, typer.Option(help="Its share beside the others.", show_default=False)
    ] = None,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Change the limits that are named, and no others.

    "none" takes a limit away.
    """
    with open_queue(url, schema, queue) as client:
        channel = client.channel(name)
        before = channel.policy()
        after = _changed(before, concurrency, rate, burst, backlog, weight)
        client.set_policies({name: after})
        now = channel.policy()
    if as_json:
        emit(now)
    else:
        say(f"{name}: {limits(before) or 'unlimited'} → {limits(now) or 'unlimited'}")


@app.command()
def pause(
    names: Names,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Let no claim have these channels; publishing goes on."""
    with open_queue(url, schema, queue) as client:
        for name in names:
            client.channel(name).pause()
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
    """Let claims have these channels again."""
    with open_queue(url, schema, queue) as client:
        for name in names:
            client.channel(name).resume()
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
    """Take no new messages, and be gone once drained."""
    with open_queue(url, schema, queue) as client:
        for name in names:
            numbers = client.channel(name).numbers()
            left = numbers.waiting + numbers.scheduled + numbers.leased
            say(f"{name}: {left:,} messages left to work on")
        confirm(f"Remove {len(names)} of queue {client.name!r} once drained?", yes)
        for name in names:
            client.channel(name).remove()
    if as_json:
        emit_all(_state(client.name, name, closing=True) for name in names)
    say(f"Closing in queue {client.name!r}: {', '.join(names)}.")


def limits(policy: "Policy") -> str:
    """A policy in a few words; nothing for the default one."""
    rate = None if policy.rate is None else f"{policy.rate:g}/s burst {policy.burst}"
    words = [
        "paused" if policy.paused else None,
        "closing" if policy.closing else None,
        None if policy.concurrency is None else f"concurrency {policy.concurrency}",
        rate,
        None if policy.backlog is None else f"backlog {policy.backlog}",
        None if policy.weight == 1 else f"weight {policy.weight:g}",
    ]
    return ", ".join(word for word in words if word)


def _state(queue: str, name: str, **state: bool) -> dict[str, object]:
    return {"queue": queue, "channel": name, **state}


def _row(info: "ChannelInfo", now: datetime) -> tuple[object, ...]:
    n = info.numbers
    numbers = (n.waiting, n.scheduled, n.leased, n.dead, age(n.oldest_due, now))
    return info.queue, info.channel, *numbers, limits(info.policy)


def _changed(
    policy: "Policy",
    concurrency: str | None,
    rate: str | None,
    burst: str | None,
    backlog: str | None,
    weight: float | None,
) -> "Policy":
    # A new rate has a burst of its own, unless one is named.
    old_burst = policy.burst if rate is None else None
    return replace(
        policy,
        concurrency=_whole("concurrency", concurrency, policy.concurrency),
        rate=_real("rate", rate, policy.rate),
        burst=_whole("burst", burst, old_burst),
        backlog=_whole("backlog", backlog, policy.backlog),
        weight=policy.weight if weight is None else weight,
        paused=False,
        closing=False,
    )


def _whole(name: str, text: str | None, before: int | None) -> int | None:
    return _read(name, text, before, int, "no whole number: write digits, or none")


def _real(name: str, text: str | None, before: float | None) -> float | None:
    return _read(name, text, before, float, "no number: write digits, or none")


def _read(
    name: str, text: str | None, before: N | None, read: Callable[[str], N], wrong: str
) -> N | None:
    if text is None:
        return before
    if text == "none":
        return None
    try:
        return read(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is {wrong}", param_hint=f"--{name}") from None
