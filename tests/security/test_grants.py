"""Who may do what on PostgreSQL, thing by thing: a new function, table or view needs a line."""

from collections.abc import Iterator

import psycopg
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import ROLES
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
    "replace_v1": PUBLISHING,
    "subscribers_v1": PUBLISHING,
    "publish_topic_v1": PUBLISHING,
    "publish_flow_v1": PUBLISHING,
    "stage_nodes_v1": WORKING,
    "parents_v1": WORKING,
    "cancel_flow_v1": {ADMIN},
    "claim_v1": WORKING,
    "by_kind_v1": WORKING,
    "complete_v1": WORKING,
    "complete_kept_v1": WORKING,
    "extend_progress_v1": WORKING,
    "hold_progress_v1": WORKING,
    "results_v1": WORKING,
    "endings_v1": LOOKING,
    "defer_v1": WORKING,
    "fail_v1": WORKING,
    "extend_v1": WORKING,
    "throttle_v1": WORKING,
    "admit_v1": WORKING,
    "start_limited_v1": WORKING,
    "sweep_limited_v1": WORKING,
    "rest_shared_limit_v1": WORKING,
    "note_limits_v1": WORKING,
    "set_shared_limit_v1": {ADMIN},
    "remove_shared_limit_v1": {ADMIN},
    "shared_limits_v1": LOOKING,
    "limited_channels_v1": LOOKING,
    "hold_v1": WORKING,
    "give_back_v1": WORKING,
    "once_v1": WORKING,
    "upkeep_v1": WORKING,
    "decide_left_v1": WORKING,
    "worker_seen_v1": WORKING,
    "worker_gone_v1": WORKING,
    "untold_dead_v1": WORKING,
    "told_dead_v1": WORKING,
    "count_v1": WORKING,
    "look_queue_stats_v1": LOOKING,
    "look_channels_v1": LOOKING,
    "look_named_v1": LOOKING,
    "look_queues_v1": LOOKING,
    "channel_names_v1": LOOKING,
    "minutes_v1": LOOKING,
    "notify_channel_v1": {*WORKING, *LOOKING},
    "free_dead_keys_v1": WORKING,
    "sleep_v1": {*WORKING, *LOOKING},
    "messages_v1": LOOKING,
    "waiting_work_v1": LOOKING,
    "look_expired_v1": LOOKING,
    "listen_v1": LOOKING,
    "hear_v1": LOOKING,
    "unlisten_v1": LOOKING,
    "cancel_v1": {ADMIN},
    "cancel_running_v1": {ADMIN},
    "set_policy_v1": {ADMIN},
    "limit_v1": {ADMIN},
    "pause_v1": {ADMIN},
    "remove_v1": {ADMIN},
    "redrive_v1": {ADMIN},
    "discard_v1": {ADMIN},
    "pause_queue_v1": {ADMIN},
    "resume_queue_v1": {ADMIN},
    "set_fairness_v1": {ADMIN},
    "time_ahead_v1": LOOKING,
    "run_now_v1": {ADMIN},
    "step_operation_v1": WORKING,
    "server_life_v1": {ADMIN},
    "begin_server_life_v1": {ADMIN},
}
# What verbs are made of: called by them, with the owner's rights, and by nobody else.
PARTS = (
    "numbers_skipped add_counts count_begin count_depth count_effect count_history "
    "count_published forget_minutes look "
    "oldest_due waits_for "
    "add_events advanced_positions channel_id only_channel_id channel_part claim_open "
    "claim_own claim_part "
    "claim_pick claim_rescan claim_scan claim_serve claim_serve_plain claim_visit cleanup "
    "cleanup_events cleanup_workers deliver_events end_waiting expire_leases free_slots "
    "control_cleanup history_kept lapse cleanup_results keep_ended keep_result "
    "note_progress "
    "latest_token lock_channels lowest_positions move_to_dead notify_workers partition "
    "put_back refuse release_keys report_lost reserve_keys settle_strays startable "
    "write_time pass_keys start_behind lock_keys park "
    "advanced_lanes claim_blocked_kinds claim_head claim_move claim_next_kinds claim_pick_kinds "
    "claim_scan_kinds claim_serve_kinds claim_visit_kinds lane_turn lowest_lanes next_slots "
    "startable_kind token_of claim_put_back "
    "add_staged announce_nodes cleanup_flows close_flow decide_nodes end_nodes release_nodes "
    "revive_nodes lock_ends decided_edges decide_locked undecided_nodes cancel_waiting "
    "wait_for_limits make_due limit_room limit_pass pick_limited started_limited cleanup_limits "
    "limit_wait_pass charge_lanes advance_limit_clock "
    "control_limit end_limit_leases note_expired_limits "
    "pace starts claim_pace claim_charge claim_reached "
    "key_names time invalid is_name is_content_type is_length is_time is_payload is_headers "
    "most_payload "
    "check_names check_texts check_choice check_content_types check_headers check_payloads "
    "check_times check_lengths check_leases check_numbers check_counts check_limits "
    "check_messages"
)
# Spark's connector and the lake are run by the schema's owner.
OWNERS = (
    "open_job job_lock hold_job begin_part end_part part_work publish_parts reserve_part_keys "
    "take_part_keys sweep_staged stage unstage publish_staged "
    "open_stream begin_stream claim_stream complete_stream extend_stream "
    "hold_stream take_stream history_needed purge_day read_history miss_history"
)
FUNCTIONS = VERBS | {f"{name}_v1": NOBODY for name in f"{PARTS} {OWNERS}".split()}

READ = {"select"}
WRITE = {"select", "insert", "update", "delete"}
BY_LOOKING = {VIEWER: READ, ADMIN: READ}
PUBLIC_VIEWS = (
    "message_v1 dead_letter_v1 history_v1 channel_v1 channel_stats_v1 queue_stats_v1 minute_v1 "
    "subscription_v1 message_id history_id server_life progress_v1 flow_v1 flow_node_v1 "
    "flow_edge_v1 flow_dead_v1"
)
PRIVATE = (
    "counting live_count minute staged_count dead_total "
    "message wake channel token lease history dead dead_count dedupe done stray sleeper "
    "result progress flow flow_id flow_count flow_node flow_edge flow_held flow_undecided "
    "worker cancel_request audit_id_seq operation_id_seq listener mail fence listener_id "
    "mail_number kind_queue shared_limit limit_lease limit_lane limit_wait limit_queue "
    "limit_clock publication staged staged_part staged_part_id staged_work staged_row "
    "stream stream_item stream_v1 stream_message_v1 "
    "lake_commit lake_file lake_commit_v1 server_life_mark"
)
RELATIONS: dict[str, dict[str, set[str]]] = {
    "migration": dict.fromkeys(ROLES, READ),
    "setting": {VIEWER: READ, ADMIN: {"select", "update"}},
    "schedule": {CONSUMER: {"select", "update"}, ADMIN: WRITE},
    "subscription": {ADMIN: WRITE},
    "pause": BY_LOOKING,
    "pause_v1": BY_LOOKING,
    "fair_queue": BY_LOOKING,
    "history_reader": BY_LOOKING,
    "operation": {VIEWER: READ, ADMIN: {"select", "insert", "update"}},
    "audit": {ADMIN: {"select", "insert"}},
    "schedule_v1": {CONSUMER: READ, ADMIN: READ},
    "worker_v1": {CONSUMER: READ, VIEWER: READ, ADMIN: READ},
    **dict.fromkeys(PUBLIC_VIEWS.split(), BY_LOOKING),
    **{name: {} for name in PRIVATE.split()},
    "schedule_revision": {ADMIN: {"usage"}},
}
PAYLOADS = {"payload", "state"}
STATES = ("message_v1", "worker_v1", "operation", "flow_v1", "flow_node_v1")
ASK = (
    "Decide who may use it: state the rights in engines/postgresql/schema.sql, and write the "
    "decision into this table and docs/how-to/roles.md."
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
    # In these, state is a word such as "waiting" or "running"; the saved state is state of message.
    words = {Right(name, "state") for name in STATES}
    assert {right for right in readable if right.what == "state"} <= words


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
