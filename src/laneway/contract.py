"""The engine contract: groups of verbs by subject, one method per verb, each a plan.

Nothing above an engine knows its database, and no engine knows a driver. An engine belongs to one
client and may remember between calls where it stopped looking.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

from .event import EventFilter, Heard, MessageEnd, StoredResult
from .flow import (
    DeadNode,
    FlowDraft,
    FlowInfo,
    FlowParent,
    FlowPlace,
    NodeDraft,
    NodeInfo,
    PublishedFlow,
    StagedNodes,
)
from .inspection import (
    ChannelFilter,
    ChannelPage,
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
    Finding,
    HistoryPage,
    MessageFilter,
    MessageInfo,
    MessagePage,
    Repair,
    Totals,
)
from .limits import LimitChange
from .model import (
    Cancelled,
    ChannelStats,
    DeadLetter,
    DeadLetterFilter,
    Deferral,
    Draft,
    Extension,
    Failure,
    HeldLease,
    HistoryEntry,
    HistoryKept,
    MadeDue,
    Policy,
    Progress,
    ProgressNote,
    Published,
    QueueStats,
    Results,
    Return,
    Settings,
    Settled,
    UpkeepReport,
)
from .operations import (
    AuditEntry,
    AuditNote,
    Fairness,
    Minute,
    MinuteFilter,
    Operation,
    OperationOrder,
    OperationState,
    Pause,
    WorkerInfo,
)
from .plan import Plan, Row, Taken
from .schedule import FireReport, Schedule, ScheduleTerms
from .shared_limits import LimitNote, PlainLimits, SharedLimit, SharedLimitChange
from .topic import Subscription, TopicCopy

DEFAULT_MAX_ATTEMPTS = 20
HIGHEST_PRIORITY = 200
"""From 0, which messages have that name none and which costs least."""
TELL_WITHIN = timedelta(days=1)
"""How long somebody is told of a dead letter: whoever asks for the first time is not told of all
that there are."""
BATCH = 10_000
"""The most messages in one statement."""

Names = tuple[str, ...]
Hold = Literal["extended", "locked", "lost"]

Ability = Literal["open transactions", "handlers' transactions", "claims by kind", "flows"]
"""What not every database can have, beside claims of some kinds and flows:
- open transactions: one that has written and stays open delays no other publish, claim or complete
- handlers' transactions: a worker gives its handlers one, which commits with the completion
"""


class EngineMessages(Protocol):
    """Messages are published, withdrawn and made due."""

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]: ...

    def publish_bulk(self, drafts: Iterable[Draft], count: int) -> Plan[list[Published]]:
        """The same for BATCH messages and more, in a transaction on a connection of our own. They
        have no keys. ``drafts`` may be made while they are read, and fail at any of them."""
        ...

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]: ...

    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """As cancel, and has the holders of leased messages asked to stop: "requested". The request
        is for this lease, never for a later one."""
        ...

    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        """Messages that are scheduled for later become due now, and start in the order of their due
        times as ever. Locks their channels, as cancel does."""
        ...

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        """Notes in the caller's transaction that ``key`` is done, and says whether it was not yet.
        A transaction that asks for the same key meanwhile waits for this one's end."""
        ...


class EngineTopics(Protocol):
    """A topic has subscribed queues; each gets a copy of what is published to it."""

    def subscribe(self, subscription: Subscription) -> Plan[None]:
        """Adds it, or replaces the one of the same topic and queue."""
        ...

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]: ...

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]: ...

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        """One copy of each draft into each subscribed queue, by queue; the drafts' own queues are
        not looked at. More than TOPIC_BATCH need one
        transaction. See ``laneway.topic.copies``."""
        ...


class EngineClaims(Protocol):
    """Workers take messages, and are woken when there are some."""

    def claim(
        self, queues: Names, limit: int, lease: timedelta, worker: str, kinds: Names | None = None
    ) -> Plan[Taken]:
        """Only messages of these ``kinds``, if given: others stay where they are and hold up
        nobody, except in a channel that starts one message at a time, which keeps its order."""
        ...

    def notify_channel(self) -> Plan[str | None]:
        """The channel that the driver's notifier listens to; None if this database has none."""
        ...

    def sleep(
        self, queues: Names, worker: str, length: timedelta | None, kinds: Names | None = None
    ) -> Plan[None]:
        """Notify this worker for ``length`` when a message, of these ``kinds`` if given, comes to
        its queues; ``laneway.names.wake_names`` are the payloads. None: no longer.
        A worker claims once more between this call and its wait."""
        ...


class EngineLeases(Protocol):
    """What is claimed is leased; settling verbs answer in the order of what they were given, one
    for one."""

    def complete(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        """Each begins with the id and the fence, as what was claimed does. ``waited``: milliseconds
        from the claim to the start of the handler, by message id, for those that waited inside a
        worker; the history's ``started_at`` comes from it. ``results`` are stored with what this
        ends, and only with that."""
        ...

    def end_cancelled(
        self,
        leases: Sequence[Row],
        waited: Mapping[int, int] | None = None,
        results: Results | None = None,
    ) -> Plan[list[Settled]]:
        """As complete, with the outcome cancelled: the holder was told to stop."""
        ...

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]: ...

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]: ...

    def extend(
        self, extensions: Sequence[Extension], notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Settled]]:
        """``notes`` are stored of those that were extended."""
        ...

    def hold(
        self, leases: Sequence[Row], span: timedelta, notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Hold]]:
        """Extends those whose row nobody else has locked, and waits for nobody. What is lost is
        answered and not noted: the holder did not ask for it. ``notes`` are stored of those that
        were not lost."""
        ...

    def progress(self, ids: Sequence[int]) -> Plan[list[Progress | None]]:
        """What the holders of these messages said last, one for one; None if nothing."""
        ...

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]: ...


class EngineChannels(Protocol):
    """Policies of channels: limits, weights, pauses."""

    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]: ...

    def limit(self, queue: str, channel: str, change: LimitChange) -> Plan[Policy]:
        """Changes what is named, with the rest read under the channel's lock; raises InvalidOption
        if a burst has no rate to go with."""
        ...

    def pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: timedelta | None = None
    ) -> Plan[None]:
        """Or resumes them. A pause of some ``length`` ends by itself."""
        ...

    def throttle(self, queue: str, channel: str, length: timedelta) -> Plan[None]:
        """Pauses the channel for ``length``; a pause that lasts longer stays as it is."""
        ...

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]: ...

    def policy(self, queue: str, channel: str) -> Plan[Policy]: ...


class EngineQueues(Protocol):
    """Pauses of queues and kinds, and by what the channels of a queue take turns."""

    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        """Of the whole queue if ``kind`` is None. No claim that begins after the commit starts
        anything of it; on PostgreSQL and SQLite no claim commits anything of it either."""
        ...

    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        """Whether it was paused. Wakes sleeping workers."""
        ...

    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        """Of queues and kinds, those that hold now; by queue, the whole queue first."""
        ...

    def set_fairness(self, queue: str, turn: timedelta | None) -> Plan[Fairness]:
        """Channels take turns by the time that handlers take, and one gets ahead of others by
        about ``turn``; by starts if that is None. What runs is not charged."""
        ...

    def fairness(self, queue: str) -> Plan[Fairness]: ...

    def time_ahead(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, float]]:
        """Those of a queue that is fair by time that wait because they have had more worker time
        than others, each with how many seconds more."""
        ...


class EngineLimits(Protocol):
    """Limits that messages of any channels and queues share."""

    plain_limits: PlainLimits

    def set_shared_limit(self, name: str, change: SharedLimitChange) -> Plan[SharedLimit]:
        """Changes what is named; raises InvalidOption if a burst has no rate to go with."""
        ...

    def rest_shared_limit(self, name: str, length: timedelta) -> Plan[None]:
        """Nothing starts behind it for ``length``; a rest that lasts longer stays as it is."""
        ...

    def note_limits(self, notes: Sequence[LimitNote]) -> Plan[list[bool]]:
        """Notes how attempts end: before their leases end, or in the same transaction. Answers
        which of the limits want to know: those that adapt or have a breaker. A stale note changes
        nothing, and a lost one only has them know less."""
        ...

    def remove_shared_limit(self, name: str) -> Plan[bool]:
        """Whether there was one. What names it is not held back by it any more."""
        ...

    def shared_limits(self) -> Plan[list[SharedLimit]]:
        """By name; also those that messages name and nobody has set."""
        ...

    def limited_channels(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, str]]:
        """Those of the channels in which something waits for shared limits, and their names."""
        ...


class EngineDeadLetters(Protocol):
    """Messages that failed for good."""

    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | DeadLetterPosition | None
    ) -> Plan[DeadLetterPage]:
        """The newest first. Looks at LOOK letters at most, and says where to go on."""
        ...

    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        """The newest dead letters by kind and signature of their error; looks at a fixed number."""
        ...

    def redrive(
        self, wanted: Sequence[int] | DeadLetterFilter, max_attempts: int | None, delay: timedelta
    ) -> Plan[int]: ...

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]: ...

    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        """How many a redrive would take; stops counting at ``most``, or after LOOK letters."""
        ...

    def untold_dead_letters(
        self, queues: Names, limit: int, hold: timedelta
    ) -> Plan[list[DeadLetter]]:
        """Those of these queues that died in the last TELL_WITHIN and that nobody was told of, the
        oldest first. Nobody else gets them for ``hold``, and nobody at all after
        ``dead_letters_told``. Writes nothing if there is none."""
        ...

    def dead_letters_told(self, letters: Sequence[DeadLetterPosition]) -> Plan[None]:
        """One that was redriven and died again meanwhile is another letter."""
        ...


class EngineOperations(Protocol):
    """Redrives and discards of many dead letters, in the background; and what operators did."""

    def add_operation(self, order: OperationOrder) -> Plan[Operation]:
        """Takes dead letters that died until now, and only those."""
        ...

    def step_operation(self, operation_id: int | None, limit: int) -> Plan[Operation | None]:
        """Does the next ``limit`` letters of a running operation, of the first one if None, and
        notes how far it is, in one transaction; None if none runs that nobody else is at."""
        ...

    def end_operation(
        self, operation_id: int, state: OperationState, error: str | None
    ) -> Plan[Operation | None]:
        """If it still runs; None if there is no such operation."""
        ...

    def operations(self, operation_id: int | None, limit: int) -> Plan[list[Operation]]:
        """The newest first; one if an id is given."""
        ...

    def add_audit(self, note: AuditNote) -> Plan[None]:
        """Writes what an operator did, in the transaction of what it did."""
        ...

    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        """The newest first; ``before`` is the id of the last one seen."""
        ...


class EngineSchedules(Protocol):
    """Messages that are published again and again."""

    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        """States a schedule, fenced by the revision and tick that were read; unchanged terms write
        nothing.
        ``laneway.schedule_rules`` decides what becomes of it."""
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


class EngineFlows(Protocol):
    """Messages that wait for others."""

    def publish_flow(self, flow: FlowDraft, nodes: Sequence[NodeDraft]) -> Plan[PublishedFlow]:
        """All of its nodes, or none. More than BATCH need one transaction. Whatever ends the last
        parent of a node publishes it in the same transaction."""
        ...

    def stage_nodes(self, lease: Row, nodes: Sequence[NodeDraft]) -> Plan[StagedNodes]:
        """The holder of a lease adds nodes to its message's flow; they become nodes when this lease
        completes the message, and are forgotten if it ends otherwise."""
        ...

    def parents(self, message_id: int) -> Plan[list[FlowParent]]:
        """Those whom a node of a flow came after, in the order in which they were given."""
        ...

    def flows(self, queue: str | None, limit: int, before: int | None) -> Plan[list[FlowInfo]]:
        """The newest first; ``before`` is the id of the last one seen. Upkeep forgets them some
        time after their end."""
        ...

    def flow(self, flow_id: int) -> Plan[FlowInfo | None]: ...

    def flow_nodes(self, flow_id: int, limit: int, after: int) -> Plan[list[NodeInfo]]:
        """By id, those above ``after``; each with its first MOST_PARENTS parents."""
        ...

    def flow_place(self, message_id: int) -> Plan[FlowPlace | None]:
        """The flow of a message, what it came after and what comes after it; None if it belongs to
        none, or that is no longer kept."""
        ...

    def flows_with_dead(self, limit: int) -> Plan[list[FlowInfo]]:
        """The oldest flows that have a dead letter; how many others there are costs nothing."""
        ...

    def dead_nodes(self, flow_id: int, limit: int) -> Plan[list[DeadNode]]:
        """The first of its nodes, by id, that are dead letters now."""
        ...

    def cancel_flow(self, flow_id: int) -> Plan[None]:
        """Nothing more of it is begun: what is held or waits is cancelled, what runs is asked to
        stop, its dead letters are discarded. Safe to repeat."""
        ...


class EngineWorkers(Protocol):
    """Worker processes, as far as they have said that they are there."""

    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        """Notes what a worker process does now, at the database's time; answers the leases under
        its name whose handlers are to stop, each time until they have ended."""
        ...

    def worker_gone(self, id: str) -> Plan[None]:
        """The process stopped as it should."""
        ...

    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        """Those seen last come first. Upkeep forgets them a day after they vanished."""
        ...


class EngineEvents(Protocol):
    """What happened to messages, for those who listen; and how messages ended."""

    def listen(self, wanted: EventFilter, length: timedelta) -> Plan[int]:
        """A mailbox for events that are committed from now on; the verbs write to it for
        ``length``, and never more than MOST_MAIL rows that were not read."""
        ...

    def hear(self, listener: int, limit: int, renewed: timedelta | None) -> Plan[Heard]:
        """Takes up to ``limit`` rows of events out of the mailbox, and with ``renewed`` lets it
        live for so long from now on. Writes nothing if there is nothing."""
        ...

    def unlisten(self, listener: int) -> Plan[None]: ...

    def endings(self, ids: Sequence[int]) -> Plan[list[MessageEnd | None]]:
        """How messages ended, one for one; None for those that have not."""
        ...

    def results(self, ids: Sequence[int]) -> Plan[list[StoredResult | None]]:
        """What the handlers of these messages returned, one for one, as far as it is kept."""
        ...


class EngineInspection(Protocol):
    """Reads, each bounded: nothing here changes anything."""

    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        """In the order of their ids, those above ``after``. Reads no payload, and LOOK rows at
        most."""
        ...

    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        """A message in any state, also dead; None if it has ended or never was."""
        ...

    def payload(self, message_id: int) -> Plan[bytes | None]:
        """The payload of a message in any state, also dead."""
        ...

    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        """What a handler saved with a message, in any state, also dead."""
        ...

    def channels(self, wanted: ChannelFilter, limit: int, after: str | None) -> Plan[ChannelPage]:
        """Those that hold anything or have a policy. Looks at LOOK rows of a table at most: if that
        is all there is, the fullest come first, then by name; else the fullest of those, and
        whoever goes on from the page's position gets all that were claimed from or have a policy,
        some of them twice."""
        ...

    def queue_stats(self) -> Plan[list[QueueStats]]:
        """All queues that have messages. Exact if LOOK rows of a table are all there is; an engine
        may read fewer."""
        ...

    def channel_stats(
        self, queue: str | None, channel: str | None, limit: int
    ) -> Plan[list[ChannelStats]]:
        """As ``channels``, those that hold anything."""
        ...

    def minutes(self, wanted: MinuteFilter) -> Plan[list[Minute]]:
        """What upkeep has counted, by (at, queue, kind); a step in which upkeep counted nothing is
        left out."""
        ...

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


class EngineMaintenance(Protocol):
    """What keeps a schema in order: upkeep, its settings, diagnosis."""

    def upkeep(self) -> Plan[UpkeepReport]: ...

    def settings(self) -> Plan[Settings]: ...

    def configure(
        self,
        history: HistoryKept | None,
        history_days: int | None,
        backoff_initial: timedelta | None,
        backoff_max: timedelta | None,
        audit_days: int | None,
    ) -> Plan[Settings]: ...

    def diagnose(self, age: float = 0.0) -> Plan[list[Finding]]:
        """What could go wrong or has, as far as the database can say: durability, upkeep and the
        schema at least. Answers also where nothing is installed. A schema that was all there
        ``age`` seconds ago is not looked at again, nor settings that were all right."""
        ...


class EngineSchema(Protocol):
    """Tables, views and functions, and who may use them."""

    @property
    def newest_version(self) -> int:
        """The number of the last migration that this package has."""
        ...

    def install(self, version: int | None = None) -> Plan[None]:
        """Up to this version of the schema, by default the newest; one that is newer stays."""
        ...

    def upgrade(self, version: int | None = None) -> Plan[None]:
        """The same for a schema that is there."""
        ...

    def repair(self) -> Plan[list[Repair]]:
        """Puts back what was dropped or changed in a schema of this version, as far as no data is
        lost by it. Each statement by itself."""
        ...

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        """Creates the database roles producer, consumer, viewer and admin, or states their rights
        anew, and answers their names; raises InvalidOption where a database has none."""
        ...

    def uninstall(self) -> Plan[None]:
        """Removes everything; raises SchemaMissing if nothing is there."""
        ...

    def schema_version(self) -> Plan[int]: ...

    def takes_writes(self) -> Plan[bool]:
        """False of a standby, and of a server that is read-only."""
        ...


class Engine(Protocol):
    """Says what a database can do, by subject: ``engine.messages.publish(...)`` is a plan."""

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

    @property
    def messages(self) -> EngineMessages: ...

    @property
    def topics(self) -> EngineTopics: ...

    @property
    def claims(self) -> EngineClaims: ...

    @property
    def leases(self) -> EngineLeases: ...

    @property
    def channels(self) -> EngineChannels: ...

    @property
    def queues(self) -> EngineQueues: ...

    @property
    def limits(self) -> EngineLimits: ...

    @property
    def dead_letters(self) -> EngineDeadLetters: ...

    @property
    def operations(self) -> EngineOperations: ...

    @property
    def schedules(self) -> EngineSchedules: ...

    @property
    def flows(self) -> EngineFlows: ...

    @property
    def workers(self) -> EngineWorkers: ...

    @property
    def events(self) -> EngineEvents: ...

    @property
    def inspection(self) -> EngineInspection: ...

    @property
    def maintenance(self) -> EngineMaintenance: ...

    @property
    def schema(self) -> EngineSchema: ...
