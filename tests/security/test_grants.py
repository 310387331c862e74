"""Who may do what on PostgreSQL, thing by thing: a new function, table or view needs a line."""

from collections.abc import Iterator

import psycopg
import pytest

from penstock import Queue
from penstock.embedded import EmbeddedPostgres
from penstock.engines.postgresql.roles import ROLES
from tests.security.catalog import Catalog, Right
from tests.stores import POSTGRESQL_SERVERS

SCHEMA = 'odd "grants'
PREFIX = "walked"

PRODUCER, CONSUMER, VIEWER, ADMIN = ROLES
PUBLISHING = {PRODUCER, CONSUMER, ADMIN}
WORKING = {CONSUMER, ADMIN}
LOOKING = {VIEWER, ADMIN}
NOBODY: set[str] = set()

VERBS = {
    "publish_v1": PUBLISHING,
    "publish_topic_v1": PUBLISHING,
    "claim_v1": WORKING,
    "complete_v1": WORKING,
    "defer_v1": WORKING,
    "fail_v1": WORKING,
    "extend_v1": WORKING,
    "hold_v1": WORKING,
    "give_back_v1": WORKING,
    "once_v1": WORKING,
    "upkeep_v1": WORKING,
    "bell_v1": {*WORKING, *LOOKING},
    "sleep_v1": {*WORKING, *LOOKING},
    "messages_v1": LOOKING,
    "listen_v1": LOOKING,
    "hear_v1": LOOKING,
    "unlisten_v1": LOOKING,
    "cancel_v1": {ADMIN},
    "set_policy_v1": {ADMIN},
    "pause_v1": {ADMIN},
    "remove_v1": {ADMIN},
    "redrive_v1": {ADMIN},
    "discard_v1": {ADMIN},
}
# What verbs are made of: called by them, with the owner's rights, and by nobody else.
PARTS = (
    "bury channel_id end_waiting expire_leases free_slots history_kept lapse lost lowest own "
    "part partition passed pick post put_back refuse release_keys reserve_keys ring serve "
    "settle_strays surfaced sweep_mail tell tidy write_time"
)
# Spark's connector and the lake are run by the schema's owner.
OWNERS = (
    "open_job stage keep_staged unstage publish_staged "
    "open_stream begin_stream claim_stream complete_stream extend_stream "
    "hold_stream take_stream history_needed purge_day read_history"
)
FUNCTIONS = VERBS | {f"{name}_v1": NOBODY for name in f"{PARTS} {OWNERS}".split()}

READ = {"select"}
WRITE = {"select", "insert", "update", "delete"}
BY_LOOKING = {VIEWER: READ, ADMIN: READ}
PUBLIC_VIEWS = (
    "message_v1 dead_letter_v1 history_v1 channel_v1 channel_numbers_v1 queue_numbers_v1 "
    "subscription_v1 message_id history_id"
)
PRIVATE = (
    "message wake channel token lease history dead dead_count dedupe done stray sleeper "
    "listener mail fence listener_id mail_number "
    "publication staged staged_row stream stream_item stream_v1 stream_message_v1 "
    "lake_commit lake_file lake_commit_v1 history_reader"
)
RELATIONS: dict[str, dict[str, set[str]]] = {
    "migration": dict.fromkeys(ROLES, READ),
    "setting": {VIEWER: READ, ADMIN: {"select", "update"}},
    "schedule": {CONSUMER: {"select", "update"}, ADMIN: WRITE},
    "subscription": {ADMIN: WRITE},
    "schedule_v1": {CONSUMER: READ, ADMIN: READ},
    **dict.fromkeys(PUBLIC_VIEWS.split(), BY_LOOKING),
    **{name: {} for name in PRIVATE.split()},
    "schedule_revision": {ADMIN: {"usage"}},
}
PAYLOADS = {"payload", "state"}
ASK = (
    "Decide who may use it: state the rights in queries/roles.sql, and write the decision into "
    "this table and docs/how-to/roles.md."
)


@pytest.fixture(scope="module", params=POSTGRESQL_SERVERS)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    server: EmbeddedPostgres = request.getfixturevalue(request.param)
    url = server.create_database("grants")
    with Queue(url, schema=SCHEMA, upkeep_every=None) as queue:
        queue.install()
        queue.install_roles(PREFIX)
        # Upkeep makes tables too; a claim makes channels.
        queue.publish(1)
        queue.claim()
        queue.upkeep()
    yield url


@pytest.fixture(scope="module")
def catalog(place: str) -> Catalog:
    return Catalog(place, SCHEMA, {role: f"{PREFIX}_{role}" for role in ROLES})


def test_every_function_has_a_decision_and_keeps_it(catalog: Catalog) -> None:
    found = catalog.functions()
    assert found.keys() - FUNCTIONS.keys() == set(), ASK
    assert FUNCTIONS.keys() - found.keys() == set(), "gone: take it out of the table"
    assert {name: found[name] for name in found if found[name] != FUNCTIONS[name]} == {}


def test_every_table_view_and_sequence_has_a_decision_and_keeps_it(catalog: Catalog) -> None:
    found = catalog.relations()
    assert found.keys() - RELATIONS.keys() == set(), ASK
    assert RELATIONS.keys() - found.keys() == set(), "gone: take it out of the table"
    assert {name: found[name] for name in found if found[name] != RELATIONS[name]} == {}


def test_no_role_reaches_a_partition(catalog: Catalog) -> None:
    assert catalog.open_partitions() == []


@pytest.mark.parametrize("role", [PRODUCER, VIEWER])
def test_producers_and_viewers_read_no_payload_and_no_state(catalog: Catalog, role: str) -> None:
    readable = catalog.columns(role, "select")
    assert {right for right in readable if right.what in PAYLOADS - {"state"}} == set()
    # message_v1.state is the word "waiting", "leased" …; the saved state is state of message.
    assert {right for right in readable if right.what == "state"} <= {Right("message_v1", "state")}


def test_a_producer_reads_only_which_version_is_installed(catalog: Catalog) -> None:
    assert {right.name for right in catalog.columns(PRODUCER, "select")} == {"migration"}
    for what in ("insert", "update"):
        assert catalog.columns(PRODUCER, what) == set()


def test_public_may_do_nothing(place: str) -> None:
    """An empty ACL is not an empty right: it means the default, and a function's is PUBLIC's."""
    text = (
        "select 'function', p.proname from pg_proc p "
        "join pg_namespace n on n.oid = p.pronamespace "
        "where n.nspname = %(s)s and (p.proacl is null or exists "
        "(select from aclexplode(p.proacl) a where a.grantee = 0)) "
        "union all select 'relation', c.relname from pg_class c "
        "join pg_namespace n on n.oid = c.relnamespace, aclexplode(c.relacl) a "
        "where n.nspname = %(s)s and a.grantee = 0 "
        "union all select 'schema', n.nspname from pg_namespace n, aclexplode(n.nspacl) a "
        "where n.nspname = %(s)s and a.grantee = 0"
    )
    with psycopg.connect(place) as connection:
        assert connection.execute(text.encode(), {"s": SCHEMA}).fetchall() == []


def test_no_role_may_create_log_in_or_grant(place: str) -> None:
    text = (
        "select rolname from pg_roles where rolname like %(p)s and (rolsuper or rolcreaterole or "
        "rolcreatedb or rolcanlogin or rolreplication or rolbypassrls or "
        "has_schema_privilege(oid, %(s)s, 'create')) "
        "union all select r.rolname from pg_auth_members m join pg_roles r on r.oid = m.member "
        "where r.rolname like %(p)s and m.admin_option"
    )
    with psycopg.connect(place) as connection:
        params = {"p": rf"{PREFIX}\_%", "s": SCHEMA}
        assert connection.execute(text.encode(), params).fetchall() == []
