"""What an operator does to channels, messages and flows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from laneway.contract import BATCH
from laneway.durations import Duration, to_seconds
from laneway.errors import InvalidOption
from laneway.flow import DeadNode, FlowInfo, FlowPage, FlowPlace, FlowState, NodeInfo
from laneway.limits import Adapt, Breaker
from laneway.model import (
    KEEP,
    Cancelled,
    HistoryKept,
    Keep,
    KeyScope,
    MadeDue,
    Policy,
    Published,
    Settings,
)
from laneway.operations import BulkAction, Fairness, Pause
from laneway.shared_limits import SharedLimit

from .base import Base
from .bulk import BulkActions
from .look import MessageLooks
from .verbs import Right, verb


class FlowActions(Base):
    """A flow may reach into any channel, so it is for those who see all."""

    @verb(Right.VIEW, "refused")
    def flows(
        self,
        *,
        queue: str | None = None,
        state: FlowState | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> FlowPage:
        """Flows that run, or ended not long ago, the newest first; the next page comes
        ``before=page.next``. With a queue or a state it looks at 1,000 flows at most."""
        return self._queue.flows.list(queue=queue, state=state, limit=limit, before=before)

    @verb(Right.VIEW, "refused")
    def flow(self, flow_id: int) -> FlowInfo:
        """How far one is; raises FlowMissing if there is none."""
        return self._queue.flows.get(flow_id)

    @verb(Right.VIEW, "refused")
    def flow_nodes(self, flow_id: int, *, limit: int = 1000, after: int = 0) -> Sequence[NodeInfo]:
        """Its nodes with their states and parents; the next page comes ``after`` the last id."""
        return self._queue.flows.nodes(flow_id, limit=limit, after=after)

    @verb(Right.VIEW, "refused")
    def flow_place(self, message_id: int) -> FlowPlace | None:
        """Where a message stands in its flow: what it came after, and what comes after it."""
        return self._queue.flows.place(message_id)

    @verb(Right.VIEW, "refused")
    def flows_with_dead(self, *, limit: int = 20) -> Sequence[FlowInfo]:
        """The oldest flows that have a dead letter, which holds what waits for it."""
        return self._queue.flows.with_dead_letters(limit=limit)

    @verb(Right.VIEW, "refused")
    def dead_nodes(self, flow_id: int, *, limit: int = 100) -> Sequence[DeadNode]:
        """The nodes of a flow that are dead letters now, which hold the others."""
        return self._queue.flows.dead(flow_id, limit=limit)

    @verb(Right.REDRIVE, "refused", acts=True)
    def redrive_flow(self, flow_id: int) -> int:
        """Puts the dead letters of a flow back, 10,000 at most, so that it goes on; answers how
        many."""
        self._queue.flows.get(flow_id)
        # What becomes a dead letter after this look waits for the next call.
        ids = [node.id for node in self._queue.flows.dead(flow_id, limit=BATCH)]
        return self._acting("redrive_flow", {"flow_id": flow_id}, int).dead_letters.redrive(ids)

    @verb(Right.CANCEL, "refused", acts=True)
    def cancel_flow(self, flow_id: int) -> FlowInfo:
        """Begins nothing more of it, asks its handlers to stop, discards its dead letters."""
        self._queue.flows.get(flow_id)
        database = self._acting("cancel_flow", {"flow_id": flow_id}).database
        database.run(database.engine.flows.cancel_flow(flow_id))
        return self._queue.flows.get(flow_id)


class ChannelActions(Base):
    """Limits, pauses and removal of channels; settings."""

    @verb(Right.LIMIT, "checked", acts=True)
    def limit(
        self,
        channel: str,
        *,
        queue: str | None = None,
        concurrency: int | Keep | None = KEEP,
        rate: float | Keep | None = KEEP,
        burst: int | Keep | None = KEEP,
        backlog: int | Keep | None = KEEP,
        weight: float | Keep = KEEP,
    ) -> Policy:
        """Changes the limits that are named and no others."""
        self._check_channel("limit", channel)
        limits: dict[str, Any] = {"concurrency": concurrency, "rate": rate, "burst": burst}
        limits |= {"backlog": backlog, "weight": weight}
        named = {name: value for name, value in limits.items() if value is not KEEP}
        target = self._where(channel, queue) | {"limits": named}
        return self._acting("limit", target).channel(channel, queue=queue).limit(**limits)

    @verb(Right.VIEW, "refused")
    def shared_limits(self) -> Sequence[SharedLimit]:
        """Limits that messages of any channels share, with what runs and waits behind each."""
        return self._queue.limits.list()

    @verb(Right.LIMIT, "refused", acts=True)
    def set_shared_limit(
        self,
        name: str,
        *,
        concurrency: int | Keep | None = KEEP,
        rate: float | Keep | None = KEEP,
        burst: int | Keep | None = KEEP,
        adapt_min: int | Keep | None = KEEP,
        adapt_max: int | Keep | None = KEEP,
        failures: float | Keep | None = KEEP,
        window: Duration | Keep | None = KEEP,
        minimum: int | Keep | None = KEEP,
        pause: Duration | Keep | None = KEEP,
    ) -> SharedLimit:
        """Changes what is named of a shared limit, and nothing else. None of its breaker or of the
        bounds that it adapts between removes all of that."""
        plain: dict[str, Any] = {"concurrency": concurrency, "rate": rate, "burst": burst}
        bounds: dict[str, Any] = {"adapt_min": adapt_min, "adapt_max": adapt_max}
        rule: dict[str, Any] = {"failures": failures, "window": window}
        rule |= {"minimum": minimum, "pause": pause}
        limits = {key: value for key, value in plain.items() if value is not KEEP}
        named = {**limits, **_given(bounds), **_given(rule)}
        if _given(bounds) or _given(rule):
            before = self._queue.limits[name].get()
            if some := _given(bounds):
                limits["adapt"] = _adapt(before.adapt, some)
            if some := _given(rule):
                limits["breaker"] = _breaker(before.breaker, some)
        target = {"name": name, "limits": named}
        return self._acting("set_shared_limit", target).limits[name].set(**limits)

    @verb(Right.LIMIT, "refused", acts=True)
    def remove_shared_limit(self, name: str) -> bool:
        """Whether there was one; what names it is not held back by it any more."""
        return self._acting("remove_shared_limit", {"name": name}, int).limits[name].remove()

    @verb(Right.PAUSE, "checked", acts=True)
    def pause_channel(
        self, channel: str, *, queue: str | None = None, duration: Duration | None = None
    ) -> None:
        """Stops claims from a channel, for ``duration`` or until it is resumed."""
        self._check_channel("pause_channel", channel)
        target = self._where(channel, queue) | {"duration": duration}
        self._acting("pause_channel", target).channel(channel, queue=queue).pause(duration)

    @verb(Right.PAUSE, "checked", acts=True)
    def resume_channel(self, channel: str, *, queue: str | None = None) -> None:
        """Allows claims from a channel again."""
        self._check_channel("resume_channel", channel)
        acting = self._acting("resume_channel", self._where(channel, queue))
        acting.channel(channel, queue=queue).resume()

    @verb(Right.VIEW, "refused")
    def pauses(self, *, queue: str | None = None) -> Sequence[Pause]:
        """The queues and kinds that are paused now."""
        return self._queue.pauses(queue=queue)

    @verb(Right.PAUSE, "refused", acts=True)
    def pause(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        duration: Duration | None = None,
        reason: str = "",
    ) -> Pause:
        """Starts nothing more of a queue, or of one kind of it."""
        target = {"queue": self._target(queue), "kind": kind, "duration": duration}
        acting = self._acting("pause", target | {"reason": reason or None})
        actor = self.principal.name
        return acting.pause(queue=queue, kind=kind, duration=duration, reason=reason, actor=actor)

    @verb(Right.PAUSE, "refused", acts=True)
    def resume(self, *, queue: str | None = None, kind: str | None = None) -> bool:
        """Ends the pause of a queue, or of one kind of it; answers whether there was one."""
        target = {"queue": self._target(queue), "kind": kind}
        return self._acting("resume", target, int).resume(queue=queue, kind=kind)

    @verb(Right.VIEW, "open")
    def fairness(self, *, queue: str | None = None) -> Fairness:
        """By what the channels of a queue take turns."""
        return self._queue.fairness(queue=queue)

    @verb(Right.LIMIT, "refused", acts=True)
    def set_fairness(
        self,
        by: Literal["starts", "time"],
        *,
        turn: Duration | None = None,
        queue: str | None = None,
    ) -> Fairness:
        """Channels take turns by starts, or by the time that their handlers take."""
        target = {"queue": self._target(queue), "by": by, "turn": turn}
        return self._acting("set_fairness", target).set_fairness(by, turn=turn, queue=queue)

    @verb(Right.REMOVE, "checked", acts=True)
    def remove_channel(self, channel: str, *, queue: str | None = None) -> None:
        """Refuses new messages, and deletes the channel once the last one has ended."""
        self._check_channel("remove_channel", channel)
        acting = self._acting("remove_channel", self._where(channel, queue))
        acting.channel(channel, queue=queue).remove()

    @verb(Right.SETTINGS, "refused", acts=True)
    def configure(
        self,
        *,
        history: HistoryKept | None = None,
        history_days: int | None = None,
        backoff_initial: Duration | None = None,
        backoff_max: Duration | None = None,
        audit_days: int | None = None,
    ) -> Settings:
        """Changes the given settings for all clients of the schema."""
        changes: dict[str, Any] = {"history": history, "history_days": history_days}
        changes |= {"backoff_initial": backoff_initial, "backoff_max": backoff_max}
        changes |= {"audit_days": audit_days}
        return self._acting("configure", changes).configure(**changes)

    def _where(self, channel: str, queue: str | None) -> dict[str, Any]:
        return {"queue": self._target(queue), "channel": channel}


class MessageActions(BulkActions, MessageLooks):
    """Cancel, redrive, discard and publish messages."""

    @verb(Right.CANCEL, "filtered", acts=True)
    def cancel(self, ids: Iterable[int], *, running: bool = False) -> list[Cancelled]:
        """Ends waiting messages without an attempt, and with ``running`` asks the workers of others
        to stop; hidden ones are answered as absent."""
        wanted = list(ids)
        seen = self._ids(wanted)
        acting = self._acting("cancel", _named(seen) | {"running": running}, _cancelled)
        found = acting.cancel(seen, running=running) if seen else []
        done = {answer.id: answer for answer in found}
        return [done.get(id, Cancelled(id, "absent")) for id in wanted]

    @verb(Right.RUN_NOW, "filtered", acts=True)
    def run_now(self, ids: Iterable[int]) -> list[MadeDue]:
        """Makes scheduled messages due now; hidden ones are answered as absent."""
        wanted = list(ids)
        seen = self._ids(wanted)
        acting = self._acting("run_now", _named(seen), _made_due)
        done = {answer.id: answer for answer in acting.run_now(seen)} if seen else {}
        return [done.get(id, MadeDue(id, "absent")) for id in wanted]

    @verb(Right.PUBLISH, "checked", acts=True)
    def publish(
        self,
        payload: Any,
        *,
        channel: str = "default",
        queue: str | None = None,
        kind: str = "",
        key: str | None = None,
        key_scope: KeyScope = "kind",
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
    ) -> Published:
        """Publishes one message by hand."""
        self._check_channel("publish", channel)
        target = {"queue": self._target(queue), "channel": channel, "kind": kind or None}
        return self._acting("publish", target).publish(
            payload,
            channel=channel,
            queue=queue,
            kind=kind,
            key=key,
            key_scope=key_scope,
            headers=headers,
            priority=priority,
            delay=delay,
            at=at,
            max_attempts=max_attempts,
            content_type=content_type,
        )

    @verb(Right.REDRIVE, "filtered", acts=True)
    def redrive(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        max_attempts: int | None = None,
        delay: Duration = 0,
    ) -> int:
        """Puts dead letters back into their queues, by ids or by filters; answers how many. By
        filters it is a bulk operation, which this call works on until it has ended."""
        by = self._wanted(queue, channel, kind, reason, error_type, since, until)
        wanted = self._chosen(ids, by)
        if wanted is None:
            return self._bulk("redrive", by | {"max_attempts": max_attempts, "delay": delay})
        options: dict[str, Any] = {"max_attempts": max_attempts, "delay": delay or None}
        acting = self._acting("redrive", _named(wanted) | options, int)
        return acting.dead_letters.redrive(wanted, max_attempts=max_attempts, delay=delay)

    @verb(Right.DISCARD, "filtered", acts=True)
    def discard(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """Deletes dead letters for good, by ids or by filters; answers how many. By filters it is
        a bulk operation, which this call works on until it has ended."""
        by = self._wanted(queue, channel, kind, reason, error_type, since, until)
        wanted = self._chosen(ids, by)
        if wanted is None:
            return self._bulk("discard", by)
        return self._acting("discard", _named(wanted), int).dead_letters.discard(wanted)

    def _chosen(self, ids: Iterable[int] | None, by: dict[str, Any]) -> list[int] | None:
        """The ids that are meant; None if the filter has to be followed. In a scope that names no
        channel of it, those among the newest 10,000."""
        if ids is not None and any(value is not None for value in by.values()):
            raise InvalidOption("ids and filters exclude each other: give one")
        if self._hidden(by["channel"]):
            return []
        if self.principal.scoped and (ids is not None or by["channel"] is None):
            return self._letters(ids, by)[0]
        return None if ids is None else list(ids)

    def _bulk(self, action: BulkAction, by: dict[str, Any]) -> int:
        """In parts of 1,000, each a transaction. Whoever does upkeep ends it, should this process
        die; the audit has its start."""
        started = self._start(action, by, None, 0)
        return self._queue.operations.run(started.id).done

    @staticmethod
    def _wanted(
        queue: str | None,
        channel: str | None,
        kind: str | None,
        reason: str | None,
        error_type: str | None,
        since: datetime | None,
        until: datetime | None,
    ) -> dict[str, Any]:
        by = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        return by | {"error_type": error_type, "since": since, "until": until}


_SHOWN = 100


def _named(ids: Sequence[int]) -> dict[str, Any]:
    """For the audit: the ids, or the first of very many."""
    shown = {"ids": list(ids[:_SHOWN])}
    return shown if len(ids) <= _SHOWN else shown | {"of": len(ids)}


def _made_due(answers: Sequence[MadeDue]) -> int:
    return sum(answer.status == "due" for answer in answers)


def _cancelled(answers: Sequence[Cancelled]) -> int:
    return sum(answer.status in ("cancelled", "requested") for answer in answers)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """With durations in seconds: the audit keeps them."""
    return {
        name: to_seconds(value) if isinstance(value, timedelta) else value
        for name, value in values.items()
        if value is not KEEP
    }


def _adapt(before: Adapt | None, given: Mapping[str, Any]) -> Adapt | None:
    """With what was not given as it was."""
    if None in given.values():
        return None
    least, most = given.get("adapt_min"), given.get("adapt_max")
    if most is None and before is None:
        raise InvalidOption("a limit adapts between two bounds: give adapt_max too")
    kept = before or Adapt(1, most or 1)
    return Adapt(kept.min if least is None else least, kept.max if most is None else most)


def _breaker(before: Breaker | None, given: Mapping[str, Any]) -> Breaker | None:
    return None if None in given.values() else replace(before or Breaker(), **given)
