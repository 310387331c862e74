"""pause, resume, run-now, limits, shared-limits, audit."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import acting, open_queue
from laneway.cli.dialog import confirm, note_unknown_queue
from laneway.cli.exits import Code
from laneway.cli.options import For, InQueue, Json, Limit, OnlyQueue, Schema, Url, Yes, age, length
from laneway.cli.output import Column, emit, emit_all, say, table

if TYPE_CHECKING:
    from laneway.inspection import ChannelInfo
    from laneway.operations import AuditEntry
    from laneway.shared_limits import SharedLimit

_AUDIT = (
    Column("id", right=True),
    Column("when", right=True),
    Column("who"),
    Column("from", wide=80),
    Column("action"),
    Column("count", right=True),
    Column("target", wide=60),
)
_LIMITS = (
    Column("queue"),
    Column("channel"),
    Column("running", right=True),
    Column("rate", right=True),
    Column("backlog", right=True),
    Column("weight", right=True, wide=80),
    Column("waits for"),
)

_SHARED = (
    Column("limit"),
    Column("running", right=True),
    Column("rate", right=True),
    Column("burst", right=True),
    Column("waiting", right=True),
    Column("adapts", wide=80),
    Column("breaker"),
    Column("rests until", wide=80),
)

Kind = Annotated[
    str | None, typer.Option("--kind", "-k", help="Only this kind.", show_default=False)
]


def pause(
    queue: InQueue = None,
    kind: Kind = None,
    for_: For = None,
    reason: Annotated[str, typer.Option(help="Reason, shown in the list of pauses.")] = "",
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Pause a queue, or one kind of its messages."""
    duration = None if for_ is None else length(for_)
    with open_queue(url, schema, queue) as client:
        note_unknown_queue(client, queue)
        done = acting(client).pause(kind=kind, duration=duration, reason=reason)
    if as_json:
        emit(done)
    until = "until it is resumed" if done.until is None else f"until {done.until.isoformat()}"
    say(f"Paused {_what(done.queue, kind)} {until}.")


def resume(
    queue: InQueue = None,
    kind: Kind = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Resume a queue, or one kind of its messages."""
    with open_queue(url, schema, queue) as client:
        note_unknown_queue(client, queue)
        done = acting(client).resume(kind=kind)
    if as_json:
        emit({"queue": client.name, "kind": kind, "resumed": done})
    if not done:
        say(f"{_what(client.name, kind)} is not paused.")
        raise typer.Exit(Code.NOTHING)
    say(f"Resumed {_what(client.name, kind)}.")


def fairness(
    by: Annotated[
        str | None,
        typer.Option(
            help="Set it: starts (channels start equally often) or time (equal run time).",
            show_default=False,
        ),
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(
            help="With --by time: run time by which a channel may get ahead of others, e.g. 1s.",
            show_default=False,
        ),
    ] = None,
    queue: InQueue = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Show or set a queue's fairness: by starts or by run time."""
    with open_queue(url, schema, queue) as client:
        note_unknown_queue(client, queue)
        if by is None:
            found = acting(client).fairness()
        else:
            ahead = None if turn is None else length(turn)
            found = acting(client).set_fairness(by, turn=ahead)  # type: ignore[arg-type]
    if as_json:
        emit(found)
    turns = "" if found.turn is None else f", in turns of {found.turn.total_seconds():g} s"
    say(f"Queue {found.queue!r} is fair by {found.by}{turns}.")


def run_now(
    ids: Annotated[list[int], typer.Argument(help="Ids of the messages.", min=1)],
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Make scheduled messages due now."""
    with open_queue(url, schema) as client:
        answers = acting(client).run_now(ids)
    if as_json:
        emit_all(answers)
    else:
        table((Column("id", right=True), Column("status")), [(a.id, a.status) for a in answers])
    done = sum(answer.status == "due" for answer in answers)
    say(f"{done} of {len(answers)} due now.")
    if not done:
        raise typer.Exit(Code.NOTHING)


def limits(
    queue: OnlyQueue = None,
    limit: Limit = 50,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List channels with limits, and how much of each is in use."""
    with open_queue(url, schema) as client:
        note_unknown_queue(client, queue)
        found = acting(client).channels(queue=queue, limited=True, limit=limit)
    if as_json:
        emit_all(found)
    else:
        table(_LIMITS, [_limits_row(info) for info in found])
    if not found:
        say("No channel has limits.")


def shared_limits(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the limit to set or remove; without it, all are listed."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=0, help="Messages that may run at once; 0 removes this part.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0, help="Starts per second; 0 removes this part.")
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(min=1, help="Starts that may be saved up and used at once; needs --rate."),
    ] = None,
    adapt_min: Annotated[
        int | None,
        typer.Option(min=0, help="Lower bound for adaptive concurrency; 0 turns it off."),
    ] = None,
    adapt_max: Annotated[
        int | None, typer.Option(min=1, help="Upper bound for adaptive concurrency.")
    ] = None,
    failures: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Failure rate that opens the circuit breaker, e.g. 0.5; 0 turns it off.",
        ),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Window of the failure rate, e.g. 30s (the default).")
    ] = None,
    minimum: Annotated[
        int | None,
        typer.Option(
            min=1, help="Attempts in the window before the breaker may open; 10 by default."
        ),
    ] = None,
    pause_for: Annotated[
        str | None,
        typer.Option(
            "--pause", help="How long the breaker stays open before a probe; 1m by default."
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the limit.")] = False,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List, set or remove limits that channels share."""
    changes: dict[str, Any] = {}
    if concurrency is not None:
        changes["concurrency"] = concurrency or None
    if rate is not None:
        changes["rate"] = rate or None
    if adapt_min is not None:
        changes["adapt_min"] = adapt_min or None
    if failures is not None:
        changes["failures"] = failures or None
    given = {"burst": burst, "adapt_max": adapt_max, "minimum": minimum}
    changes |= {key: value for key, value in given.items() if value is not None}
    lengths = {"window": window, "pause": pause_for}
    changes |= {key: length(value) for key, value in lengths.items() if value is not None}
    if name is None and (changes or remove):
        raise typer.BadParameter("which limit? Write its name, as in laneway shared-limits stripe")
    if adapt_min and adapt_max is None:
        raise typer.BadParameter("--adapt-min needs --adapt-max")
    with open_queue(url, schema) as client:
        user = acting(client)
        if name is not None and remove:
            confirm(f"Remove limit {name!r}, so that nothing is held back by it?", yes)
            if not user.remove_shared_limit(name):
                raise typer.Exit(Code.NOTHING)
        if name is not None and changes:
            user.set_shared_limit(name, **changes)
        found = [one for one in user.shared_limits() if name in (None, one.name)]
    if as_json:
        emit_all(found)
    else:
        table(_SHARED, [_shared_row(one) for one in found])
    if not found:
        say("There are no shared limits.")


def audit(
    limit: Limit = 50,
    before: Annotated[
        int | None, typer.Option(help="Only entries before this id.", show_default=False)
    ] = None,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """List operators' actions, newest first."""
    with open_queue(url, schema) as client:
        found = acting(client).audit(limit=limit, before=before)
    if as_json:
        emit_all(found)
    else:
        now = datetime.now(UTC)
        table(_AUDIT, [_audit_row(entry, now) for entry in found])
    if not found:
        say("Nobody has done anything yet.")


def _what(queue: str, kind: str | None) -> str:
    return f"queue {queue!r}" if kind is None else f"kind {kind!r} of queue {queue!r}"


def _shared_row(limit: "SharedLimit") -> tuple[object, ...]:
    full = "∞" if limit.in_force is None else limit.in_force
    rate = "" if limit.rate is None else f"{limit.rate:g}/s"
    rests = "" if limit.resting_until is None else f"{limit.resting_until:%H:%M:%S}"
    adapts = "" if limit.adapt is None else f"{limit.adapt.min} to {limit.adapt.max}"
    from laneway.shared_limits import breaker_words

    plain = limit.name, f"{limit.running}/{full}", rate, limit.burst, limit.waiting
    return *plain, adapts, breaker_words(limit), rests


def _limits_row(info: "ChannelInfo") -> tuple[object, ...]:
    policy, stats = info.policy, info.stats
    full = "∞" if policy.concurrency is None else policy.concurrency
    rate = "" if policy.rate is None else f"{policy.rate:g}/s"
    backlog = (
        "" if policy.backlog is None else f"{stats.waiting + stats.scheduled}/{policy.backlog}"
    )
    running = f"{stats.leased}/{full}"
    return info.queue, info.channel, running, rate, backlog, policy.weight, info.waits_for


def _audit_row(entry: "AuditEntry", now: datetime) -> tuple[object, ...]:
    target = ", ".join(f"{name}={value}" for name, value in entry.target.items())
    when = age(entry.at, now)
    who = entry.actor, entry.source, entry.action
    return entry.id, when, *who, entry.affected, target
