"""The engine contract: one method per verb, each a plan.

Nothing above an engine knows its database, and no engine knows a driver. An engine belongs to one
client and may remember between calls where it stopped looking.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from .event import Ending, EventFilter, Heard
from .insight import ChannelInfo, Finding, HistoryPage, MessageFilter, MessageInfo, Totals
from .model import (
    Answer,
    Cancelled,
    ChannelNumbers,
    DeadLetter,
    DeadLetterFilter,
    Deferral,
    Draft,
    Extension,
    Failure,
    HistoryEntry,
    HistoryKept,
    Policy,
    Published,
    QueueNumbers,
    Return,
    Settings,
    Settled,
    UpkeepReport,
)
from .plan import Plan, Row
from .schedule import FireReport, Schedule, ScheduleTerms
from .topic import Copy, Subscription

DEFAULT_MAX_ATTEMPTS = 20
BATCH = 10_000
"""The most messages in one statement."""


Hold = Literal["extended", "locked", "lost"]

Ability = Literal["open transactions", "handlers' transactions"]
"""What not every database can have.

- open transactions: one that has written and stays open delays no other publish, claim or complete
- handlers' transactions: a worker gives its handlers one, which commits with the completion
"""


class Taken(NamedTuple):
    """What a claim answered; ``claimed_at`` and ``until`` hold for all its leases.

    A row is: id, fence, queue, channel, kind, priority, attempt, max_attempts, due, published_at,
    first_published_at, expires_at (these four as seconds since 1970), key, content_type, headers
    (JSON text), state_type, state, payload, spent (tries that failed since the last progress);
    more columns may follow.
    """

    rows: Sequence[Row]
    answer: Answer
    look_again: timedelta | None
    claimed_at: datetime | None
    until: datetime | None


class Engine(Protocol):
    """Settling verbs answer in the order of what they were given, one for one."""

    @property
    def dialect(self) -> str:
        """Whose SQL this is: postgresql, mysql or sqlite."""
        ...

    @property
    def atomic(self) -> bool:
        """Whether every plan needs a transaction around it."""
        ...

    @property
    def lacks(self) -> Mapping[Ability, str]:
        """What this database cannot have, and why."""
        ...

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]: ...

    def subscribe(self, subscription: Subscription) -> Plan[None]:
        """Adds it, or replaces the one of the same topic and queue."""
        ...

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]: ...

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]: ...

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[Copy]]]:
        """One copy of each draft into each subscribed queue, by queue; the drafts' own queues are
        not looked at. More than TOPIC_BATCH need one
        transaction. See ``penstock.topic.copies``."""
        ...

    def claim(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str
    ) -> Plan[Taken]: ...

    def complete(self, leases: Sequence[Row]) -> Plan[list[Settled]]:
        """Each begins with the id and the fence, as what was claimed does."""
        ...

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]: ...

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]: ...

    def extend(self, extensions: Sequence[Extension]) -> Plan[list[Settled]]: ...

    def hold(self, leases: Sequence[Row], span: timedelta) -> Plan[list[Hold]]:
        """Extends those whose row nobody else has locked, and waits for nobody. What is lost is
        answered and not noted: the holder did not ask for it."""
        ...

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]: ...

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        """Notes in the caller's transaction that ``key`` is done, and says whether it was not yet.
        A transaction that asks for the same key meanwhile waits for this one's end."""
        ...

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]: ...

    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]: ...

    def pause(self, queue: str, channels: Sequence[str], paused: bool) -> Plan[None]: ...

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]: ...

    def policy(self, queue: str, channel: str) -> Plan[Policy]: ...

    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | None
    ) -> Plan[list[DeadLetter]]: ...

    def redrive(
        self, wanted: Sequence[int] | DeadLetterFilter, max_attempts: int | None, delay: timedelta
    ) -> Plan[int]: ...

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]: ...

    def count_dead_letters(self, wanted: Sequence[int] | DeadLetterFilter, most: int) -> Plan[int]:
        """How many a redrive would take; stops counting at ``most``."""
        ...

    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[list[MessageInfo]]:
        """In the order of their ids, those above ``after``. Reads no payload."""
        ...

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        """A message in any state, also dead; None if it has ended or never was."""
        ...

    def payload(self, message_id: int) -> Plan[bytes | None]:
        """The payload of a message in any state, also dead."""
        ...

    def channels(
        self, queue: str | None, paused: bool | None, limit: int
    ) -> Plan[list[ChannelInfo]]:
        """Those that hold anything or have a policy, the fullest first, then by name."""
        ...

    def queue_numbers(self) -> Plan[list[QueueNumbers]]: ...

    def channel_numbers(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelNumbers]]: ...

    def history(self, message_id: int) -> Plan[list[HistoryEntry]]: ...

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """What ended after ``position``, in an order in which nothing appears late: a reader that
        goes on from the answer's position misses none and sees none twice. None is now."""
        ...

    def totals(self) -> Plan[Totals]:
        """Reads counters, no rows."""
        ...

    def clock(self) -> Plan[datetime]:
        """What time it is for the database."""
        ...

    def settings(self) -> Plan[Settings]: ...

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_first: timedelta | None,
        backoff_most: timedelta | None,
    ) -> Plan[Settings]: ...

    def upkeep(self) -> Plan[UpkeepReport]: ...

    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        """States a schedule, fenced by the revision and tick that were read; unchanged terms write
        nothing.
        ``penstock.firing`` decides what becomes of it."""
        ...

    def pause_schedule(self, queue: str, name: str, pausing: bool) -> Plan[Schedule | None]: ...

    def remove_schedule(self, queue: str, name: str) -> Plan[bool]: ...

    def run_schedule(self, queue: str, name: str) -> Plan[list[Published] | None]:
        """Publishes its message now; None if there is no such schedule."""
        ...

    def schedules(
        self, queue: str | None, name: str | None, limit: int, after: tuple[str, str] | None
    ) -> Plan[list[Schedule]]:
        """By (queue, name); one if both are given."""
        ...

    def next_firing(self, queues: tuple[str, ...] | None) -> Plan[timedelta | None]:
        """How long until a schedule is due; zero if one is, None if there is none. Only reads."""
        ...

    def fire_due(self, queues: tuple[str, ...] | None, limit: int) -> Plan[FireReport]:
        """Locks what is due (not waiting for what others hold), publishes, and moves the ticks.
        Needs one transaction."""
        ...

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        """A mailbox for events that are committed from now on; the verbs write to it for
        ``length``, and never more than MOST_MAIL rows that were not read."""
        ...

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Takes up to ``limit`` rows of events out of the mailbox, and with ``renewed`` lets it
        live for so long from now on. Writes nothing if there is nothing."""
        ...

    def unlisten(self, listener: int) -> Plan[None]: ...

    def endings(self, ids: Sequence[int]) -> Plan[list[Ending | None]]:
        """How messages ended, one for one; None for those that have not."""
        ...

    def bell(self) -> Plan[str | None]:
        """What the driver's bell listens to; None if this database cannot ring."""
        ...

    def sleep(self, queues: tuple[str, ...], worker: str, length: timedelta | None) -> Plan[None]:
        """Have the bell rung for this worker when something comes to its queues, for ``length``;
        with None no longer. Whoever sleeps claims once more before it waits."""
        ...

    @property
    def newest_version(self) -> int:
        """The number of the last migration that this package has."""
        ...

    def install(self) -> Plan[None]: ...

    def upgrade(self) -> Plan[None]: ...

    def examine(self) -> Plan[list[Finding]]:
        """What could go wrong or has, as far as the database can say: durability, upkeep and the
        schema at least. Answers also where nothing is installed."""
        ...

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        """Creates the database roles producer, consumer, viewer and admin, or states their rights
        anew, and answers their names; raises InvalidOption where a database has none."""
        ...

    def uninstall(self) -> Plan[None]:
        """Removes everything; raises SchemaMissing if nothing is there."""
        ...

    def schema_version(self) -> Plan[int]: ...
