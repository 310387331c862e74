"""Database roles on PostgreSQL: every role and every verb, and nothing beside them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, get_type_hints

import psycopg
import pytest

from laneway import Queue, Worker
from laneway.contract import Engine
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import ROLES
from laneway.errors import DatabaseFailed, InvalidName, InvalidOption
from laneway.event import EventFilter
from laneway.flow import FlowDraft, NodeDraft
from laneway.inspection import ChannelFilter, DeadLetterPosition, MessageFilter
from laneway.limits import AttemptEnd, LimitChange
from laneway.model import (
    DeadLetterFilter,
    Deferral,
    Draft,
    Extension,
    Failure,
    HeldLease,
    KeptResult,
    KeyMode,
    Policy,
    ProgressNote,
    Return,
)
from laneway.operations import AuditNote, MinuteFilter, OperationOrder, WorkerInfo
from laneway.plan import Plan
from laneway.schedule import ScheduleTerms
from laneway.shared_limits import LimitNote, SharedLimitChange
from laneway.topic import Subscription
from tests.next_version import add_migration
from tests.stores import POSTGRESQL_SERVERS

SCHEMA = 'odd "name'
DENIED = "42501"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DRAFT = Draft(
    *(b"{}", "q", "c", "", "application/json", None, None, None, 0, None, None, None, None, 20)
)
KEYED = DRAFT._replace(key="k", key_window=SECOND)
FLOW = FlowDraft("q", "f", SECOND)
NODES = [NodeDraft(DRAFT, (), "completed"), NodeDraft(DRAFT, (-1,), "ended")]
REPLACING = KEYED._replace(mode=KeyMode(None))
TERMS = ScheduleTerms(
    *("q", "s", None, timedelta(hours=1), "UTC", None, "once", SECOND, None, "c", "", None, None),
    *(0, {}, "application/json", b"{}", None, 20, "kind"),
)

PRODUCER, CONSUMER, VIEWER, ADMIN = ROLES
ALL = set(ROLES)
WORK = {CONSUMER, ADMIN}
ORDER = OperationOrder("discard", {"queue": "nothing"}, {}, 0, "ann")
LOOK = {VIEWER, ADMIN}
NOBODY: set[str] = set()


class Verb(NamedTuple):
    allowed: set[str]
    plan: Callable[[Engine], Plan[Any]]
    atomic: bool = False


def _twice(engine: Engine) -> Plan[Any]:
    """The second one replaces the first."""
    yield from engine.messages.publish([REPLACING])
    return (yield from engine.messages.publish([REPLACING]))


WORKER = WorkerInfo("w", "h", 1, "1", ("q",), (), 1, 0, NOW, NOW, name="w")

VERBS = {
    "publish": Verb({PRODUCER, *WORK}, lambda e: e.messages.publish([DRAFT, KEYED])),
    "publish_bulk": Verb(
        {PRODUCER, *WORK}, lambda e: e.messages.publish_bulk([DRAFT], 1), atomic=True
    ),
    "publish, replacing": Verb({PRODUCER, *WORK}, lambda e: _twice(e)),
    "publish_topic, replacing": Verb(
        {PRODUCER, *WORK}, lambda e: e.topics.publish_topic("t", [REPLACING])
    ),
    "publish_topic": Verb({PRODUCER, *WORK}, lambda e: e.topics.publish_topic("t", [DRAFT])),
    "publish_flow": Verb({PRODUCER, *WORK}, lambda e: e.flows.publish_flow(FLOW, NODES)),
    "stage_nodes": Verb(WORK, lambda e: e.flows.stage_nodes((1, 1), NODES)),
    "parents": Verb(WORK, lambda e: e.flows.parents(1)),
    "flows": Verb(LOOK, lambda e: e.flows.flows(None, 10, None)),
    "flow": Verb(LOOK, lambda e: e.flows.flow(1)),
    "flow_nodes": Verb(LOOK, lambda e: e.flows.flow_nodes(1, 10, 0)),
    "flow_place": Verb(LOOK, lambda e: e.flows.flow_place(1)),
    "flows_with_dead": Verb(LOOK, lambda e: e.flows.flows_with_dead(10)),
    "dead_nodes": Verb(LOOK, lambda e: e.flows.dead_nodes(1, 10)),
    "cancel_flow": Verb({ADMIN}, lambda e: e.flows.cancel_flow(1)),
    "schema_version": Verb(ALL, lambda e: e.schema.schema_version()),
    "clock": Verb(ALL, lambda e: e.inspection.clock()),
    "takes_writes": Verb(ALL, lambda e: e.schema.takes_writes()),
    "claim": Verb(WORK, lambda e: e.claims.claim(("q",), 1, SECOND, "w")),
    "complete": Verb(WORK, lambda e: e.leases.complete([HeldLease(1, 1)])),
    "defer": Verb(
        WORK,
        lambda e: e.leases.defer([Deferral(1, 1, None, None, True, None, None, None, None, None)]),
    ),
    "fail": Verb(WORK, lambda e: e.leases.fail([Failure(1, 1, "no", None, None)])),
    "extend": Verb(WORK, lambda e: e.leases.extend([Extension(1, 1, SECOND)])),
    "hold": Verb(WORK, lambda e: e.leases.hold([(1, 1)], SECOND)),
    "note_limits": Verb(
        WORK, lambda e: e.limits.note_limits([LimitNote("api", 1, 1, AttemptEnd.COMPLETED)])
    ),
    "throttle": Verb(WORK, lambda e: e.channels.throttle("q", "c", timedelta(seconds=1))),
    "set_shared_limit": Verb(
        {ADMIN}, lambda e: e.limits.set_shared_limit("api", SharedLimitChange(concurrency=1))
    ),
    "rest_shared_limit": Verb(WORK, lambda e: e.limits.rest_shared_limit("api", SECOND)),
    "remove_shared_limit": Verb({ADMIN}, lambda e: e.limits.remove_shared_limit("api")),
    "shared_limits": Verb(LOOK, lambda e: e.limits.shared_limits()),
    "limited_channels": Verb(LOOK, lambda e: e.limits.limited_channels("q", ["c"])),
    "give_back": Verb(WORK, lambda e: e.leases.give_back([Return(1, 1, None)])),
    "once": Verb(WORK, lambda e: e.messages.once("q", "k", SECOND)),
    "upkeep": Verb(WORK, lambda e: e.maintenance.upkeep()),
    "end_cancelled": Verb(WORK, lambda e: e.leases.end_cancelled([HeldLease(1, 1)])),
    "worker_seen": Verb(WORK, lambda e: e.workers.worker_seen(WORKER)),
    "worker_gone": Verb(WORK, lambda e: e.workers.worker_gone("w")),
    "workers": Verb({*WORK, *LOOK}, lambda e: e.workers.workers(10)),
    "notify_channel": Verb({*WORK, *LOOK}, lambda e: e.claims.notify_channel()),
    "sleep": Verb({*WORK, *LOOK}, lambda e: e.claims.sleep(("q",), "w", SECOND)),
    "next_firing": Verb(WORK, lambda e: e.schedules.next_firing(None)),
    "fire_due": Verb(WORK, lambda e: e.schedules.fire_due(None, 10), atomic=True),
    "schedules": Verb(WORK, lambda e: e.schedules.schedules(None, None, 10, None)),
    "run_schedule": Verb(WORK, lambda e: e.schedules.run_schedule("q", "kept")),
    "progress": Verb(LOOK, lambda e: e.leases.progress([1])),
    "messages": Verb(LOOK, lambda e: e.inspection.messages(MessageFilter(), 10, 0)),
    "message": Verb(LOOK, lambda e: e.inspection.message(1)),
    "channels": Verb(LOOK, lambda e: e.inspection.channels(ChannelFilter(), 10, None)),
    "minutes": Verb(LOOK, lambda e: e.inspection.minutes(MinuteFilter(NOW, NOW + SECOND))),
    "policy": Verb(LOOK, lambda e: e.channels.policy("q", "c")),
    "queue_stats": Verb(LOOK, lambda e: e.inspection.queue_stats()),
    "channel_stats": Verb(LOOK, lambda e: e.inspection.channel_stats(None, None, 10)),
    "dead_letter_groups": Verb(LOOK, lambda e: e.dead_letters.dead_letter_groups("q", 10)),
    "count_dead_letters": Verb(
        LOOK, lambda e: e.dead_letters.count_dead_letters(DeadLetterFilter("q"), 10)
    ),
    "history": Verb(LOOK, lambda e: e.inspection.history(1)),
    "history_since": Verb(LOOK, lambda e: e.inspection.history_since("1.0", 10)),
    "totals": Verb(LOOK, lambda e: e.inspection.totals()),
    "settings": Verb(LOOK, lambda e: e.maintenance.settings()),
    "subscriptions": Verb(LOOK, lambda e: e.topics.subscriptions(None)),
    "diagnose": Verb(LOOK, lambda e: e.maintenance.diagnose()),
    "listen": Verb(LOOK, lambda e: e.events.listen(EventFilter(), SECOND)),
    "hear": Verb(LOOK, lambda e: e.events.hear(1, 10, None)),
    "unlisten": Verb(LOOK, lambda e: e.events.unlisten(1)),
    "endings": Verb(LOOK, lambda e: e.events.endings([1, 2])),
    "results": Verb(WORK, lambda e: e.events.results([1, 2])),
    "payload": Verb({ADMIN}, lambda e: e.inspection.payload(1)),
    "saved_state": Verb({ADMIN}, lambda e: e.inspection.saved_state(1)),
    "dead_letters": Verb(
        {ADMIN}, lambda e: e.dead_letters.dead_letters(DeadLetterFilter(), 10, None)
    ),
    "untold_dead_letters": Verb(
        WORK, lambda e: e.dead_letters.untold_dead_letters(("q",), 1, SECOND)
    ),
    "dead_letters_told": Verb(
        WORK, lambda e: e.dead_letters.dead_letters_told([DeadLetterPosition(NOW, 1)])
    ),
    "redrive": Verb({ADMIN}, lambda e: e.dead_letters.redrive([1], None, SECOND)),
    "discard": Verb({ADMIN}, lambda e: e.dead_letters.discard([1])),
    "cancel": Verb({ADMIN}, lambda e: e.messages.cancel([1])),
    "cancel_running": Verb({ADMIN}, lambda e: e.messages.cancel_running([1])),
    "set_policies": Verb(
        {ADMIN}, lambda e: e.channels.set_policies("q", {"c": Policy(concurrency=1)})
    ),
    "limit": Verb({ADMIN}, lambda e: e.channels.limit("q", "c", LimitChange(concurrency=1))),
    "pause": Verb({ADMIN}, lambda e: e.channels.pause("q", ["c"], False)),
    "remove": Verb({ADMIN}, lambda e: e.channels.remove("q", ["gone"])),
    "configure": Verb({ADMIN}, lambda e: e.maintenance.configure(None, 30, None, None, None)),
    "add_audit": Verb(
        {ADMIN}, lambda e: e.operations.add_audit(AuditNote("ann", "cli", "pause", {}))
    ),
    "audit": Verb({ADMIN}, lambda e: e.operations.audit(10, None)),
    "pause_queue": Verb({ADMIN}, lambda e: e.queues.pause_queue("other", "k", SECOND, "ann", "")),
    "resume_queue": Verb({ADMIN}, lambda e: e.queues.resume_queue("other", "k")),
    "pauses": Verb(LOOK, lambda e: e.queues.pauses(None)),
    "set_fairness": Verb({ADMIN}, lambda e: e.queues.set_fairness("other", SECOND)),
    "fairness": Verb(LOOK, lambda e: e.queues.fairness("q")),
    "time_ahead": Verb(LOOK, lambda e: e.queues.time_ahead("q", ["c"])),
    "add_operation": Verb({ADMIN}, lambda e: e.operations.add_operation(ORDER)),
    "step_operation": Verb(WORK, lambda e: e.operations.step_operation(2**60, 1)),
    "end_operation": Verb({ADMIN}, lambda e: e.operations.end_operation(2**60, "cancelled", None)),
    "operations": Verb(LOOK, lambda e: e.operations.operations(None, 1)),
    "run_now": Verb({ADMIN}, lambda e: e.messages.run_now([1])),
    "subscribe": Verb({ADMIN}, lambda e: e.topics.subscribe(Subscription("t", "q"))),
    "unsubscribe": Verb({ADMIN}, lambda e: e.topics.unsubscribe("t", "nobody")),
    "schedule": Verb({ADMIN}, lambda e: e.schedules.schedule(TERMS)),
    "pause_schedule": Verb({ADMIN}, lambda e: e.schedules.pause_schedule("q", "kept", True)),
    "remove_schedule": Verb({ADMIN}, lambda e: e.schedules.remove_schedule("q", "gone")),
    "uninstall": Verb(NOBODY, lambda e: e.schema.uninstall(), atomic=True),
    "install_roles": Verb(NOBODY, lambda e: e.schema.install_roles(None), atomic=True),
}
# With these arguments a verb calls another function first.
VARIANTS = {
    "claim of kinds": Verb(WORK, lambda e: e.claims.claim(("kinds",), 1, SECOND, "w", ("k",))),
    "complete with results": Verb(
        WORK,
        lambda e: e.leases.complete(
            [HeldLease(1, 1)], None, {(1, 1): KeptResult(SECOND, "x", b"")}
        ),
    ),
    "extend with progress": Verb(
        WORK,
        lambda e: e.leases.extend([Extension(1, 1, SECOND)], [ProgressNote(1, 1, 0.5, "half")]),
    ),
    "hold with progress": Verb(
        WORK, lambda e: e.leases.hold([(1, 1)], SECOND, [ProgressNote(1, 1, 0.5, "half")])
    ),
}
CALLED = VERBS | VARIANTS
# They change nothing where everything is installed, so there is nothing to refuse.
UNTOUCHED = {"install", "upgrade", "repair"}


@pytest.fixture(scope="module", params=POSTGRESQL_SERVERS)
def owner(request: pytest.FixtureRequest) -> Iterator[Queue]:
    server: EmbeddedPostgres = request.getfixturevalue(request.param)
    url = server.create_database("roles")
    with Queue(url, schema=SCHEMA, upkeep_every=None) as queue:
        queue.install()
        queue.install_roles("shop")
        queue.schedule("kept", every=timedelta(hours=1), queue="q")
        with psycopg.connect(url, autocommit=True) as connection:
            for role in ROLES:
                grant = f'create role "login_{role}" login in role "shop_{role}"'
                connection.execute(grant.encode())
        yield queue


@pytest.fixture(scope="module")
def clients(owner: Queue) -> Iterator[dict[str, Queue]]:
    made = {
        role: Queue(url_of(owner, role), schema=SCHEMA, pool_size=1, upkeep_every=None)
        for role in ROLES
    }
    yield made
    for client in made.values():
        client.close()


def url_of(owner: Queue, role: str) -> str:
    return owner._address.url.replace("postgres@", f"login_{role}@")


def test_every_verb_is_in_the_table() -> None:
    facts = {"atomic", "dialect", "lacks"}
    names = {name for name in vars(Engine) if not name.startswith("_")} - facts
    groups = [get_type_hints(getattr(Engine, name).fget)["return"] for name in names]
    known = {name for part in groups for name in vars(part)}
    verbs = {name for name in known if not name.startswith("_")} - {"newest_version"}
    assert verbs == {name.partition(",")[0] for name in VERBS} | UNTOUCHED


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", CALLED)
def test_a_role_may_do_its_verbs_and_no_other(
    clients: dict[str, Queue], role: str, name: str
) -> None:
    verb, database = CALLED[name], clients[role].database
    plan = verb.plan(database.engine)
    if role in verb.allowed:
        database.run(plan, atomic=verb.atomic)
        return
    with pytest.raises(DatabaseFailed) as refused:
        database.run(plan, atomic=verb.atomic)
    assert refused.value.sqlstate == DENIED, refused.value


def test_a_whole_life_with_each_in_its_role(owner: Queue, clients: dict[str, Queue]) -> None:
    published = clients[PRODUCER].publish({"card": "4111"}, queue="life", channel="t", key="k")
    assert published.id is not None
    info = clients[VIEWER].message(published.id)
    assert info is not None and (info.state, info.payload_size) == ("waiting", 15)
    (message,) = clients[CONSUMER].claim(queues=["life"])
    assert message.json() == {"card": "4111"}
    message.fail("declined", error=ValueError("no"))
    assert [m.reason for m in clients[VIEWER].messages(queue="life", state="dead")] == ["declined"]
    assert clients[ADMIN].payload(published.id) == b'{"card":"4111"}'
    assert clients[ADMIN].dead_letters.redrive([published.id]) == 1
    (message,) = clients[CONSUMER].claim(queues=["life"])
    message.complete()
    # The tests of single verbs settle ids that nobody has had, which may come to be this one's.
    outcomes = [e.outcome for e in clients[VIEWER].history(published.id) if e.outcome != "stale"]
    assert outcomes == ["failed", "redriven", "completed"]
    assert clients[CONSUMER].upkeep().ran


def test_a_consumer_is_enough_for_a_worker_and_its_schedules(
    owner: Queue, clients: dict[str, Queue]
) -> None:
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    owner.schedule("late", {"n": 1}, every=timedelta(days=1), start=hour_ago, queue="work")
    with psycopg.connect(owner._address.url, autocommit=True) as connection:
        connection.execute(
            'update "odd ""name".schedule set next_at = start, look_at = start where name = %s',
            ["late"],
        )
    assert clients[CONSUMER].fire_schedules(queues=["work"]).fired == 1
    worker = Worker(clients[CONSUMER], queues=["work"], concurrency=2)
    seen = []

    @worker.default_handler
    async def note(payload: dict[str, int]) -> None:
        seen.append(payload)

    worker.run(until_empty=True)
    assert seen == [{"n": 1}]


def test_policies_hold_whoever_set_them(clients: dict[str, Queue]) -> None:
    clients[ADMIN].channel("t", queue="limited").limit(concurrency=1, backlog=5)
    clients[PRODUCER].publish_many([1, 2], queue="limited", channel="t")
    assert len(clients[CONSUMER].claim(10, queues=["limited"])) == 1
    stats = {n.queue: n for n in clients[VIEWER].stats()}
    assert (stats["limited"].waiting, stats["limited"].leased) == (1, 1)


@pytest.mark.parametrize("role", ROLES)
def test_no_role_touches_the_private_tables(owner: Queue, role: str) -> None:
    """But for those that the grants name."""
    granted = {
        PRODUCER: {"migration"},
        CONSUMER: {"migration", "schedule"},
        VIEWER: {"migration", "setting", "pause", "operation", "fair_queue", "history_reader"},
        ADMIN: {
            *("migration", "setting", "schedule", "subscription"),
            *("pause", "operation", "audit", "fair_queue", "history_reader"),
        },
    }[role]
    with psycopg.connect(owner._address.url) as connection:
        found = connection.execute(
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname = %s and c.relkind in ('r', 'p') and has_table_privilege(%s, c.oid, "
            "'select, insert, update, delete, truncate, references, trigger')",
            [SCHEMA, f"shop_{role}"],
        ).fetchall()
    assert {name for (name,) in found} == granted


def test_only_an_admin_reads_payloads_in_views(owner: Queue) -> None:
    for role in ROLES:
        for view in ("message_v1", "dead_letter_v1", "schedule_v1"):
            with psycopg.connect(owner._address.url) as connection:
                row = connection.execute(
                    "select has_column_privilege(%s, %s, 'payload', 'select')",
                    [f"shop_{role}", f'"odd ""name".{view}'],
                ).fetchone()
            reads = role == ADMIN or (role == CONSUMER and view == "schedule_v1")
            assert row == (reads,), (role, view)


def test_a_consumer_moves_ticks_and_changes_nothing_else_of_a_schedule(owner: Queue) -> None:
    with psycopg.connect(owner._address.url) as connection:
        found = connection.execute(
            "select a.attname from pg_attribute a where a.attrelid = %s::regclass "
            "and a.attnum > 0 and has_column_privilege(%s, a.attrelid, a.attnum, 'update')",
            ['"odd ""name".schedule', f"shop_{CONSUMER}"],
        ).fetchall()
    assert {name for (name,) in found} == {"next_at", "look_at", "last_at", "fired", "error"}


def test_functions_with_the_owners_rights_are_closed(owner: Queue) -> None:
    with psycopg.connect(owner._address.url) as connection:
        functions = connection.execute(
            "select p.proname, p.prosecdef, p.proconfig, "
            "has_function_privilege('public', p.oid, 'execute') from pg_proc p "
            "join pg_namespace n on n.oid = p.pronamespace where n.nspname = %s",
            [SCHEMA],
        ).fetchall()
    assert len(functions) > 30
    assert [name for name, _, _, public in functions if public] == []
    with_rights = {name: config for name, definer, config, _ in functions if definer}
    assert len(with_rights) == 68
    path = 'search_path="odd ""name", pg_temp'
    assert [name for name, config in with_rights.items() if path not in (config or [])] == []


def test_only_the_owner_repairs_and_what_was_put_back_is_closed(
    owner: Queue, clients: dict[str, Queue]
) -> None:
    """A new function could be called by all, with the rights of whoever calls it."""
    broken = {
        "function results_v1": 'drop function "odd ""name".results_v1',
        "index result_expiry": 'drop index "odd ""name".result_expiry',
    }
    for part, breaks in broken.items():
        with psycopg.connect(owner._address.url, autocommit=True) as connection:
            connection.execute(breaks.encode())
        for client in clients.values():
            with pytest.raises(DatabaseFailed) as refused:
                client.repair()
            assert refused.value.sqlstate == DENIED, refused.value
        assert [str(repair.part) for repair in owner.repair()] == [part]
    for role, client in clients.items():
        assert client.repair() == []
        test_a_role_may_do_its_verbs_and_no_other(clients, role, "results")
    test_functions_with_the_owners_rights_are_closed(owner)


def test_what_a_caller_creates_is_not_found_first(owner: Queue, clients: dict[str, Queue]) -> None:
    with psycopg.connect(url_of(owner, PRODUCER), autocommit=True) as connection:
        connection.execute("create temp table message (id bigint)")
        connection.execute("create temp table setting (history text)")
        connection.execute("create function pg_temp.nextval(text) returns bigint return 7")
        published = clients[PRODUCER].publish("x", queue="shadow", connection=connection)
        row = connection.execute("select count(*) from pg_temp.message").fetchone()
    assert row == (0,)
    assert published.id is not None and owner.message(published.id) is not None


def test_a_stranger_may_do_nothing(owner: Queue) -> None:
    with psycopg.connect(owner._address.url, autocommit=True) as connection:
        connection.execute("create role stranger login")
        try:
            url = owner._address.url.replace("postgres@", "stranger@")
            with Queue(url, schema=SCHEMA, upkeep_every=None) as client:
                for name, verb in CALLED.items():
                    if name in ("clock", "takes_writes"):  # the server answers anybody
                        continue
                    with pytest.raises(DatabaseFailed) as refused:
                        client.database.run(verb.plan(client.database.engine), atomic=verb.atomic)
                    assert refused.value.sqlstate == DENIED
        finally:
            connection.execute("drop role stranger")


def test_an_upgrade_keeps_the_roles(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.create_database("roles upgraded")
    with Queue(url, schema="kept") as queue:
        queue.install()
        queue.install_roles()
        queue.install_roles()
        with psycopg.connect(url, autocommit=True) as connection:
            # As an older version would have left it: its rights are others, functions are new.
            connection.execute("alter function kept.publish_v1 security invoker")
            connection.execute("grant select on kept.message to kept_viewer")
        add_migration(monkeypatch, "postgresql")
        queue.upgrade()
        with psycopg.connect(url) as connection:
            looks = connection.execute(
                "select has_table_privilege('kept_viewer', 'kept.message', 'select')"
            )
            assert looks.fetchone() == (False,)
            rows = connection.execute(
                "select prosecdef from pg_proc p join pg_namespace n on n.oid = p.pronamespace "
                "where nspname = 'kept' and proname in ('publish_v1', 'once_v1')"
            ).fetchall()
            left = connection.execute(
                "select has_table_privilege('kept_viewer', 'kept.made_up', 'select'), "
                "has_function_privilege('kept_admin', 'kept.made_up_v1()', 'execute')"
            )
            assert left.fetchone() == (False, False)
        assert rows == [(True,), (True,)]


def test_names_that_would_be_cut_are_refused(server: EmbeddedPostgres) -> None:
    with Queue(server.create_database("roles long"), schema="s" * 60) as queue:
        queue.install()
        with pytest.raises(InvalidName, match="shorter"):
            queue.install_roles()


def test_sqlite_has_none() -> None:
    with Queue("sqlite://") as queue:
        queue.install()
        with pytest.raises(InvalidOption, match="no roles"):
            queue.install_roles()


@pytest.mark.parametrize("role", [PRODUCER, CONSUMER])
def test_only_the_owner_says_what_time_it_is(owner: Queue, role: str) -> None:
    """p_now is for tests: with it, upkeep would drop history and give a key's time back."""
    far = datetime.now(UTC) + timedelta(days=36_500)
    before = datetime.now(UTC) - timedelta(minutes=5)
    with Queue(url_of(owner, role), schema=SCHEMA, upkeep_every=None, clock=lambda: far) as client:
        published = client.publish("x", queue="forged", key=f"forged by {role}")
        if role == CONSUMER:
            partitions = _partitions(owner)
            assert client.upkeep().ran
            assert _partitions(owner) == partitions
    info = owner.message(published.id or 0)
    assert info is not None and before < info.published_at < before + timedelta(hours=1)


def test_any_headers_that_a_producer_writes_let_the_message_end(
    owner: Queue, clients: dict[str, Queue]
) -> None:
    """Whoever completes it looks in them for how long to keep the result."""
    name = '"laneway-keep-result"'
    wishes = ("1e300", "-5", "9" * 300, "null", "true", '"5"', "[]", "{}")
    written = [f"{{{name}: {wish}}}" for wish in wishes]
    refused = [f"{{{name}: {wish}}}" for wish in ("1e400", "9" * 5000)] + [f"[{name}]", name]
    publish = (
        "select id from \"odd \"\"name\".publish_v1(array['x'::bytea], array['headers'], "
        "array['c'], p_headers => array[%s])"
    )
    with psycopg.connect(url_of(owner, PRODUCER), autocommit=True) as connection:
        for headers in written:
            connection.execute(publish.encode(), [headers])
        for headers in refused:
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="headers must be"):
                connection.execute(publish.encode(), [headers])
    claimed = clients[CONSUMER].claim(100, queues=["headers"])
    assert len(claimed) == len(written)
    for message in claimed:
        message.complete(result="done")


def test_no_role_reads_a_result_that_is_no_longer_kept(
    owner: Queue, clients: dict[str, Queue]
) -> None:
    """Not even with a clock that is slow."""
    published = owner.publish("x", queue="brief", keep_result=0)
    (message,) = owner.claim(queues=["brief"])
    message.complete(result="secret")
    assert published.id is not None
    past = datetime.now(UTC) - timedelta(days=1)
    found = {}
    for url in (owner._address.url, url_of(owner, CONSUMER), url_of(owner, ADMIN)):
        with Queue(url, schema=SCHEMA, upkeep_every=None, clock=lambda: past) as client:
            found[url] = client.stored_result(published.id) is not None
    assert list(found.values()) == [True, False, False]
    assert clients[CONSUMER].stored_result(published.id) is None


def _partitions(owner: Queue) -> list[tuple[str]]:
    with psycopg.connect(owner._address.url) as connection:
        text = "select inhrelid::regclass::text from pg_inherits order by 1"
        return connection.execute(text).fetchall()


def test_what_is_endless_in_the_tables_is_still_listed(
    owner: Queue, clients: dict[str, Queue]
) -> None:
    """Python has no time for SQL's infinity, so drivers refuse the whole answer. No function lets
    it in; whoever owns the tables may write it."""
    ids = []
    with psycopg.connect(owner._address.url, autocommit=True) as connection:
        for at in ("infinity", "-infinity"):
            number = owner.publish("x", queue="endless", channel="c").id
            assert number is not None
            ids.append(number)
            change = (
                'update "odd ""name".message set due = %s, expires_at = \'infinity\' where id = %s'
            )
            connection.execute(change.encode(), [at, number])
            change = (
                'update "odd ""name".wake set due = %s, at = greatest(at, %s) where message_id = %s'
            )
            connection.execute(change.encode(), [at, at, number])
    viewer, consumer = clients[VIEWER], clients[CONSUMER]
    assert [info.due for info in viewer.messages(queue="endless")] == [None, None]
    assert [n.oldest_due for n in viewer.stats() if n.queue == "endless"] == [None]
    assert [c.stats.oldest_due for c in viewer.channels(queue="endless")] == [None]
    assert [n.oldest_due for n in viewer.channel_stats(queue="endless")] == [None]
    position = viewer.history_since().position
    (message,) = consumer.claim(10, queues=["endless"])
    message.complete()
    assert [entry.due for entry in viewer.history(message.id)] == [None]
    assert message.id in [entry.message_id for entry in viewer.history_since(position).entries]
    clients[ADMIN].cancel(ids)
