"""Whatever a caller plants, a function with the owner's rights finds only the owner's things."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import ROLES
from laneway.errors import DatabaseFailed
from tests.security.attacker import HIJACKED, Attacker
from tests.security.test_roles import ADMIN, CALLED, LOOK, PRODUCER, WORK

SCHEMA = "well kept"
DEFINERS = (
    "select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace "
    "where n.nspname = %s and p.prosecdef"
)
UNSAFE = (
    'create function "well kept".unsafe(x text) returns integer language plpgsql security definer '
    "as $$ begin return length(x); end $$"
)


@pytest.fixture(scope="module")
def owner(server: EmbeddedPostgres) -> Iterator[Queue]:
    url = server.create_database("hijacks")
    with Queue(url, schema=SCHEMA, upkeep_every=None) as queue:
        queue.install()
        queue.install_roles("kept")
        queue.schedule("kept", every=timedelta(hours=1), queue="q")
        with psycopg.connect(url, autocommit=True) as connection:
            for role in ROLES:
                connection.execute(
                    f'create role "mallory_{role}" login in role "kept_{role}"'.encode()
                )
        yield queue
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("drop schema if exists attic cascade")


@pytest.fixture(params=ROLES)
def attacker(owner: Queue, request: pytest.FixtureRequest) -> Iterator[tuple[str, Attacker]]:
    made = Attacker(owner._address.url, f"mallory_{request.param}", SCHEMA)
    yield request.param, made
    made.close()


def test_the_traps_catch_a_careless_function(owner: Queue) -> None:
    with psycopg.connect(owner._address.url, autocommit=True) as connection:
        connection.execute(UNSAFE)
        attacker = Attacker(owner._address.url, "mallory_admin", SCHEMA)
        connection.execute('grant execute on function "well kept".unsafe to public')
        try:
            with pytest.raises(psycopg.Error, match=HIJACKED):
                attacker.connection.execute("select \"well kept\".unsafe('x')")
        finally:
            attacker.close()
            connection.execute('drop function "well kept".unsafe')


# Functions that a verb calls later than first: who may, and a call.
LATER = {
    "count_v1": (WORK, "count_v1(10)"),
    "decide_left_v1": (WORK, "decide_left_v1()"),
    "replace_v1": (
        {PRODUCER, *WORK},
        """replace_v1('{x}', '{q}', '{c}', '{""}', '{text/plain}', '{null}', '{k}', '{null}', '{0}',
        '{null}', '{null}', '{null}', '{null}', '{1}', '{channel}', '{null}')""",
    ),
    "free_dead_keys_v1": (WORK, "free_dead_keys_v1('{q}', '{k}')"),
    "admit_v1": (WORK, "admit_v1('{1}', '{1}', '{api}')"),
    "start_limited_v1": (WORK, "start_limited_v1('{q}', null, 10, interval '1 minute', 'w')"),
    "note_limits_v1": (WORK, "note_limits_v1('{api}', '{1}', '{1}', '{1}')"),
    "sweep_limited_v1": (WORK, "sweep_limited_v1('{1}', '{api}')"),
    "begin_server_life_v1": ({ADMIN}, "begin_server_life_v1()"),
    "waiting_work_v1": (LOOK, "waiting_work_v1(null)"),
    "look_expired_v1": (LOOK, "look_expired_v1(interval '30 seconds')"),
    "look_queues_v1": (LOOK, "look_queues_v1(10, true)"),
    "look_named_v1": (LOOK, "look_named_v1('{q}', '{c}', 10, null)"),
    "channel_names_v1": (LOOK, "channel_names_v1('q', '', null, null, '', '', 10, 10)"),
}


@pytest.fixture(scope="module")
def functions(owner: Queue) -> dict[str, str]:
    """The function with the owner's rights that each verb calls first."""
    with psycopg.connect(owner._address.url) as connection:
        names = [name for (name,) in connection.execute(DEFINERS.encode(), [SCHEMA])]
    found: dict[str, str] = {}
    for verb, terms in CALLED.items():
        plan = terms.plan(owner.database.engine)
        text = next(plan).sql
        found.update((verb, name) for name in names if f'"well kept".{name}(' in text)
        plan.close()
    assert set(names) - {*found.values(), *LATER} == set(), "no verb calls it: call it here by hand"
    return found


def test_no_verb_finds_what_its_caller_planted(
    owner: Queue, attacker: tuple[str, Attacker], functions: dict[str, str]
) -> None:
    role, hostile = attacker
    for name in functions:
        if role in CALLED[name].allowed:
            owner.database.run(CALLED[name].plan(owner.database.engine), hostile.connection)
    for roles, call in LATER.values():
        if role in roles:
            hostile.connection.execute(f'select "well kept".{call}'.encode())
    assert hostile.planted_rows() == 0


def test_doctor_finds_a_search_path_that_is_open_to_all(server: EmbeddedPostgres) -> None:
    """As `public` is before PostgreSQL 15."""
    url = server.create_database("open path")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        levels = {}
        for change in ("grant create on schema public to", "revoke create on schema public from"):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"{change} public".encode())
            levels[change] = [f.level for f in queue.diagnose() if f.check == "search path"]
    assert list(levels.values()) == [["warn"], ["ok"]]


SQUATTED = {
    "the schema is another's": "create schema squatted authorization squatter",
    "another may create": "create schema squatted; grant create on schema squatted to squatter",
    "anybody may create": "create schema squatted; grant create on schema squatted to public",
    "another has created": (
        "create schema squatted; grant create on schema squatted to squatter; set role squatter; "
        "create function squatted.trap() returns integer return 1; reset role; "
        "revoke create on schema squatted from squatter"
    ),
}


@pytest.mark.parametrize("before", SQUATTED)
def test_a_schema_that_others_have_a_hand_in_gets_no_roles(
    server: EmbeddedPostgres, before: str
) -> None:
    """What they create there would be found by functions that run with the owner's rights."""
    url = server.create_database(f"squatted: {before}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role squatter")
        connection.execute(SQUATTED[before].encode())
        try:
            with Queue(url, schema="squatted", upkeep_every=None) as queue:
                queue.install()
                with pytest.raises(DatabaseFailed, match=r"squatter|PUBLIC"):
                    queue.install_roles()
                connection.execute("alter schema squatted owner to postgres")
                connection.execute("revoke create on schema squatted from public, squatter")
                connection.execute("reassign owned by squatter to postgres")
                assert len(queue.install_roles()) == len(ROLES)
        finally:
            connection.execute("drop schema squatted cascade")
            connection.execute("drop role squatter")
