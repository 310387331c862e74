"""Whatever a role passes to a function: it is refused with a clear error or does no harm. Nothing
that readers could not read is stored, and everything else goes on.

Every function that a role may call is found in the catalogue, with its arguments, so a new one is
tried without being named here.
"""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import count
from typing import NamedTuple

import psycopg
import pytest

from laneway import Queue
from laneway.client.shared.checks import LONGEST_LEASE, MOST_TEXT, SHORTEST_LEASE
from laneway.client.shared.draft import MOST_CONTENT_TYPE, MOST_HEADERS
from laneway.client.shared.options import MOST_PAYLOAD
from laneway.contract import BATCH, HIGHEST_PRIORITY
from laneway.dev.embedded import EmbeddedPostgres
from laneway.durations import CENTURY
from laneway.engines.postgresql.schema import ROLES
from laneway.names import NAME_BYTES
from laneway.payload import MAX_PAYLOAD
from laneway.to_json import DEPTH, plain

SCHEMA = "walked"
PRODUCER = ROLES[0]
INVALID = "22023"

FUNCTIONS = """
select p.proname, array(
        select array[p.proargnames[n.n], format_type(p.proargtypes[n.n - 1], null)]
        from generate_series(1, p.pronargs) n(n)),
    array(select r from unnest(%(roles)s::text[]) r
        where has_function_privilege('walked_' || r, p.oid, 'execute'))
from pg_proc p where p.pronamespace = to_regnamespace(%(schema)s)::oid order by 1
"""
COLUMNS = """
select c.relname, a.attname, format_type(coalesce(nullif(t.typelem, 0), t.oid), null),
    t.typelem <> 0
from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
where c.relnamespace = to_regnamespace(%(schema)s)::oid and c.relkind in ('r', 'p')
    and not c.relispartition and a.attnum > 0 and not a.attisdropped
"""
NAMES = {"queue", "channel", "kind", "key", "worker", "topic", "name", "queues", "kinds"}
# A position that nothing lies before; never listed.
ENDLESS = {("operation", "died_at")}


class Function(NamedTuple):
    name: str
    arguments: list[tuple[str, str]]
    role: str


# What is fine: by name, else by type.
SAMPLES = {
    "p_headers": "{null}",
    "p_content_type": "{text/plain}",
    "p_content_types": "{text/plain}",
    "p_state_types": "{text/plain}",
    "p_outcome": "completed",
    "p_outcomes": "{1}",
    "p_when": "{completed}",
    "p_by": "queue",
    "p_priority": "{0}",
    "p_parents": "{}",
    "p_children": "{}",
    "p_places": "{}",
    "p_flow_id": None,
    "p_waited": None,
    "p_open_xids": "{}",
    "p_open_turns": "{}",
    "p_open_wakes": "{}",
    "p_since": "2026-01-01 00:00Z",
    "p_until": "2026-01-01 01:00Z",
    "p_delay": "{0}",
    "p_named": "{concurrency}",
    "p_failures": "0.5",
    "p_key": "{null}",
    "p_key_scope": "{kind}",
}
BY_TYPE = {
    "text": "walk",
    "bytea": "\\x78",
    "bigint": "1",
    "integer": "1",
    "smallint": "1",
    "boolean": "true",
    "double precision": "1",
    "interval": "1 minute",
    "timestamp with time zone": None,
    "jsonb": "{}",
}
NOISE = "".join(chr(33 + n * n * 7919 % 90) for n in range(3200)).replace("'", "q")
DEEP = "[" * 5000 + "]" * 5000
HOSTILE: dict[str, list[str | None]] = {
    "text": ["x" * (NAME_BYTES + 1), NOISE, "é" * 100_000, "", None, "\udcff", "a\x01b"],
    "bytea": ["\\x" + "00" * (MAX_PAYLOAD + 1), "\\x", None],
    "bigint": ["-9223372036854775808", "-1", "0", "9223372036854775807", None],
    "integer": ["-2147483648", "-1", "0", "2147483647", None],
    "smallint": ["-32768", "-1", "201", "32767", None],
    "boolean": [None],
    "double precision": ["NaN", "Infinity", "-Infinity", "-1", "0", "1e308", "1e-308", None],
    "interval": ["-1 day", "200 years", "20000 years", "2147483647 months", "infinity", "0", None],
    "timestamp with time zone": [
        *(
            "20000-01-01 00:00Z",
            "infinity",
            "-infinity",
            "0001-01-01 00:00Z",
            "0044-03-15 00:00Z BC",
        ),
        None,
    ],
    "jsonb": [DEEP, '{"1": 1e999}', "[]", "1", '{"1": "x"}', None],
}
HEADERS = [
    '{"x": ' + DEEP[4000:6000] + "}",
    '{"x": 1e100000}',
    '{"x": 1e-100000}',
    '{"x": ' + "9" * 5000 + "}",
    '{"x": "' + "x" * MOST_HEADERS + '"}',
    '{"x": "\\u0000"}',
    "[]",
    "{",
]


@pytest.fixture(scope="module")
def url(server: EmbeddedPostgres) -> str:
    url = server.create_database("arguments")
    with Queue(url, schema=SCHEMA, upkeep_every=None) as queue:
        queue.install()
        queue.install_roles(SCHEMA)
    with psycopg.connect(url, autocommit=True) as connection:
        for role in ROLES:
            grant = f"create role arguments_{role} login in role walked_{role}"
            connection.execute(grant.encode())
    return url


def functions(url: str) -> list[Function]:
    """Each with the first of the roles that may call it."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            FUNCTIONS.encode(), {"roles": list(ROLES), "schema": SCHEMA}
        ).fetchall()
    return [
        Function(name, [(argument, kind) for argument, kind in arguments], roles[0])
        for name, arguments, roles in found
        if roles
    ]


class World:
    """What is there while somebody tries arguments: messages that wait, run and died, which the
    attempts are made on, and a queue in which others work."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.owner = Queue(url, schema=SCHEMA, upkeep_every=None)
        self.connection = psycopg.connect(url, autocommit=True)
        self._numbers = count(1)

    def close(self) -> None:
        self.owner.close()
        self.connection.close()

    def held(self) -> tuple[int, int]:
        """A message of a flow under a lease, which wants its result to be kept."""
        number = next(self._numbers)
        headers = '{"laneway-keep-result": 60}'
        publish = (
            "select ids[1] from walked.publish_flow_v1(null, 'held', %s, '1 day', '{completed}', "
            "'{}', '{}', '{}', '{x}', '{held}', '{c}', '{k}', '{text/plain}', array[%s], '{0}', "
            "'{}', '{}', '{}', '{}', '{20}')"
        )
        self.connection.execute(publish.encode(), [f"flow {number}", headers])
        (message,) = self.owner.claim(queues=["held"], lease=timedelta(hours=1))
        return message.id, message.fence

    def waiting(self) -> int:
        number = self.owner.publish("x", queue="waiting", delay=timedelta(days=1)).id
        assert number is not None
        return number

    def dead(self) -> int:
        self.owner.publish("x", queue="dead")
        (message,) = self.owner.claim(queues=["dead"])
        message.fail("no")
        return message.id

    def values(self, function: Function) -> dict[str, str | None]:
        """What it may be called with, on messages that are there."""
        names = {name for name, _ in function.arguments}
        found = {name: sample(name, kind) for name, kind in function.arguments}
        if names & {"p_fences", "p_fence"}:
            message, fence = self.held()
            held = {"p_ids": message, "p_fences": fence, "p_kept_ids": message}
            held |= {"p_kept_fences": fence, "p_note_ids": message, "p_note_fences": fence}
            found |= {name: f"{{{value}}}" for name, value in held.items() if name in names}
            found |= {
                name: str(value)
                for name, value in {"p_id": message, "p_fence": fence}.items()
                if name in names
            }
        elif "p_ids" in names:
            found["p_ids"] = f"{{{self.waiting()},{self.dead()}}}"
        return found

    def works(self) -> None:
        """Others publish, claim, settle, cancel, maintain and look, as before."""
        queue = self.owner
        with Queue(self.url, schema=SCHEMA, upkeep_every=None) as other:
            published = [queue.publish(n, queue="world", channel=f"c{n}").id for n in range(3)]
            ids = [number for number in published if number is not None]
            claimed = {message.id: message for message in other.claim(10, queues=["world"])}
            assert set(claimed) == set(ids)
            claimed[ids[0]].complete()
            claimed[ids[1]].fail("no")
            claimed[ids[2]].give_back(delay=timedelta(days=1))
            assert [one.status for one in other.cancel([ids[2]])] == ["cancelled"]
            assert other.upkeep().ran
            assert "world" in {stats.queue for stats in other.stats()}
            list(other.channels(limit=BATCH))
            list(other.messages(limit=BATCH))
            list(other.dead_letters.list(limit=BATCH))
            other.schedules.list()
            list(other.flows.list(limit=1000))
            list(other.workers())
            other.limits.list()
            other.diagnose()

    def misfits(self) -> list[str]:
        """What no client could have stored, in any column of any table."""
        found = []
        columns = self.connection.execute(COLUMNS.encode(), {"schema": SCHEMA}).fetchall()
        for table, column, kind, many in columns:
            if (test := misfit(column, kind)) is None or (table, column) in ENDLESS:
                continue
            values = f'select unnest("{column}") v' if many else f'select "{column}" v'
            query = " ".join(
                ["select count(*) from (", values, f'from {SCHEMA}."{table}") x where', test]
            )
            row = self.connection.execute(query.encode()).fetchone()
            assert row is not None
            if row[0]:
                found.append(f"{table}.{column}")
        return found


def misfit(column: str, kind: str) -> str | None:
    if kind == "text":
        if column == "key":  # with what it is of in front (key_names_v1)
            return f"octet_length(v) > {NAME_BYTES + 16}"
        return f"octet_length(v) > {NAME_BYTES if column in NAMES else 65536}"
    return {
        "timestamp with time zone": (
            "extract(epoch from v) + 62135596800 not between 0 and 315537897599"
        ),
        "double precision": "v in ('NaN', 'Infinity', '-Infinity')",
        "interval": "v not between interval '0' and interval '36600 days'",
        "bytea": f"octet_length(v) > {MAX_PAYLOAD}",
        "jsonb": (
            f"octet_length(v::text) > 4 * {MOST_HEADERS} "
            f"or jsonb_path_exists(v, 'strict $.**{{{DEPTH + 1}}}')"
        ),
    }.get(kind)


def sample(name: str, kind: str) -> str | None:
    if name in SAMPLES:
        found = SAMPLES[name]
        # The same name can be one value and many.
        return found[1:-1] if found and found[0] == "{" and not kind.endswith("[]") else found
    found = BY_TYPE[kind.removesuffix("[]")]
    return as_array(found) if kind.endswith("[]") else found


def as_array(*values: str | None) -> str:
    def quoted(value: str | None) -> str:
        if value is None:
            return "null"
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return "{" + ",".join(map(quoted, values)) + "}"


def hostile(name: str, kind: str) -> Iterator[str | None]:
    """What is too long, too large, null, out of range, of the wrong encoding or shape."""
    one = kind.removesuffix("[]")
    values = HOSTILE[one] + (HEADERS if "header" in name else [])
    if one == kind:
        yield from values
        return
    fine = BY_TYPE[one] if name != "p_headers" else "{}"
    yield from (as_array(value) for value in values)
    yield from (None, "{}", as_array(fine, fine), as_array(fine, None), as_array(None, fine))
    yield as_array(*[fine] * (BATCH + 1))
    yield "{" + as_array(fine, fine) + "," + as_array(fine, fine) + "}"
    yield "[0:0]=" + as_array(fine)


def call(function: Function, values: dict[str, str | None]) -> bytes:
    kinds = dict(function.arguments)
    given = ", ".join(
        f"{name} => {literal(value)}::{kinds[name]}" for name, value in values.items()
    )
    text = "".join(["select * from ", f"{SCHEMA}.{function.name}(", given, ")"])
    return text.encode("utf-8", "surrogateescape")


def literal(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def connect(url: str, role: str) -> psycopg.Connection[tuple[object, ...]]:
    theirs = url.replace("postgres@", f"arguments_{role}@")
    return psycopg.connect(theirs, autocommit=True, options="-c statement_timeout=20s")


# What the server itself says of a value (22: not of its type, 23: a column says so), or that what
# is asked for is not there or not theirs.
CLEAR = ("22", "23", "42501")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("role", ROLES)
def test_no_argument_stops_others_or_is_stored(url: str, role: str) -> None:
    with closing(World(url)) as world, connect(url, role) as connection:
        mine = [function for function in functions(url) if function.role == role]
        assert mine
        for function in mine:
            connection.execute(call(function, world.values(function)))
            assert attempts(connection, world, function) == []
            assert world.misfits() == [], function.name
            world.works()


def attempts(
    connection: psycopg.Connection[tuple[object, ...]], world: World, function: Function
) -> list[str]:
    """Errors that do not help whoever gets them."""
    found = []
    values = world.values(function)
    for name, kind in function.arguments:
        for value in hostile(name, kind):
            try:
                connection.execute(call(function, values | {name: value}))
            except psycopg.Error as error:
                if not str(error.sqlstate).startswith(CLEAR):
                    shown = (value or "null")[:40]
                    found.append(f"{function.name}({name} => {shown!r}): {error.sqlstate} {error}")
            else:
                values = world.values(function)
    return found


# The limits are those of the client.

PUBLISH = {
    "p_payload": "x",
    "p_queue": "edges",
    "p_channel": "c",
}


def nested(levels: int) -> str:
    """Headers: an object with arrays in it."""
    return '{"x": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


EDGES: dict[str, tuple[str, str | None, str | None]] = {
    "queue": ("p_queue", "x" * NAME_BYTES, "x" * (NAME_BYTES + 1)),
    "channel": ("p_channel", "x" * NAME_BYTES, "x" * (NAME_BYTES + 1)),
    "no channel": ("p_channel", "x", None),
    "empty channel": ("p_channel", "x", ""),
    "kind": ("p_kind", "x" * NAME_BYTES, "x" * (NAME_BYTES + 1)),
    "bytes, not characters": ("p_kind", "é" * (NAME_BYTES // 2), "é" * (NAME_BYTES // 2 + 1)),
    "key": ("p_key", "x" * NAME_BYTES, "x" * (NAME_BYTES + 1)),
    "content type": ("p_content_type", "x" * MOST_CONTENT_TYPE, "x" * (MOST_CONTENT_TYPE + 1)),
    "content type in Greek": ("p_content_type", "text/plain", "text/πλαιν"),
    "headers": (
        "p_headers",
        '{"x": "' + "x" * (MOST_HEADERS - 9) + '"}',
        '{"x": "' + "x" * (MOST_HEADERS - 8) + '"}',
    ),
    "depth": ("p_headers", nested(DEPTH), nested(DEPTH + 1)),
    "numbers": ("p_headers", '{"x": 1.7976931348623157e308}', '{"x": 1e309}'),
    "payload": ("p_payload", "x" * MAX_PAYLOAD, "x" * (MAX_PAYLOAD + 1)),
    "priority": ("p_priority", str(HIGHEST_PRIORITY), str(HIGHEST_PRIORITY + 1)),
    "delay": ("p_delay", f"{CENTURY.days} days", f"{CENTURY.days} days 1 second"),
    "no delay": ("p_delay", "0", "-1 microsecond"),
    "lifetime": ("p_expires_in", f"{CENTURY.days} days", f"{CENTURY.days} days 1 second"),
    "key window": ("p_key_window", f"{CENTURY.days} days", f"{CENTURY.days} days 1 second"),
    "at": ("p_at", "9999-12-31 23:59:59.999998Z", "9999-12-31 23:59:59.999999Z"),
    "first at": ("p_at", "0001-01-01 00:00:00.000001Z", "0001-01-01 00:00:00Z"),
    "expires_at": ("p_expires_at", "9999-12-31 23:59:59.999998Z", "10000-01-01 00:00Z"),
    "attempts": ("p_max_attempts", str(2**31 - 1), "0"),
}


@pytest.mark.parametrize("what", EDGES)
def test_the_limits_are_those_of_the_client(url: str, what: str) -> None:
    name, fits, too_much = EDGES[what]
    kinds = dict(next(f for f in functions(url) if f.name == "publish_v1").arguments)
    with connect(url, PRODUCER) as connection:
        for number in (1, 2):  # one message alone goes another way than two

            def publish(value: str | None, number: int = number) -> None:
                given: dict[str, str | None] = {**PUBLISH, name: value}
                connection.execute(batch(given, kinds, number))

            publish(fits)
            with pytest.raises(psycopg.Error) as refused:
                publish(too_much)
            assert refused.value.sqlstate == INVALID
            assert str(refused.value).startswith("laneway: the ")


def batch(given: dict[str, str | None], kinds: dict[str, str], number: int) -> bytes:
    parts = [
        f"{key} => {literal(as_array(*[value] * number))}::{kinds[key]}"
        for key, value in given.items()
    ]
    return "".join(["select * from ", SCHEMA, ".publish_v1(", ", ".join(parts), ")"]).encode()


def test_the_client_nests_headers_as_deep(url: str) -> None:
    value: object = []
    for _ in range(DEPTH - 2):
        value = [value]
    plain({"x": value})
    with Queue(url, schema=SCHEMA, upkeep_every=None) as queue:
        queue.publish(1, queue="edges", headers={"x": value})


def test_a_batch_has_as_many_of_everything(url: str) -> None:
    attempts = {
        "10001 messages": f"array_fill('x'::bytea, array[{BATCH + 1}]), '{{q}}', '{{c}}'",
        "another length": "array['x', 'y', 'z']::bytea[], '{q, q}', '{c}'",
        "a column of 2": "array['x']::bytea[], '{q}', '{c, d}'",
        "1 messages and a column of 2": "array['x']::bytea[], '{q}', '{c}', '{k, l}'",
        "a column of 3": "array['x']::bytea[], '{q}', '{c}', p_delay => '{1 s, 2 s, 3 s}'",
        "is missing": "array['x', null]::bytea[], '{q}', '{c}'",
    }
    with connect(url, PRODUCER) as connection:
        for said, arguments in attempts.items():
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=said):
                connection.execute(f"select {SCHEMA}.publish_v1({arguments})".encode())


def test_leases_are_as_long_as_the_client_s(url: str) -> None:
    claim = f"select {SCHEMA}.claim_v1('{{edges}}', 1, interval '1 second' * %s, 'w')"
    shortest, longest = SHORTEST_LEASE.total_seconds(), LONGEST_LEASE.total_seconds()
    with connect(url, "consumer") as connection:
        for fine, wrong in ((shortest, shortest - 0.001), (longest, longest + 0.001)):
            connection.execute(claim.encode(), [fine])
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="lease"):
                connection.execute(claim.encode(), [wrong])


def test_text_is_cut_where_the_client_cuts_it(url: str) -> None:
    """A failure must not be lost for its words."""
    with closing(World(url)) as world, connect(url, "consumer") as connection:
        message, fence = world.held()
        connection.execute(
            f"select {SCHEMA}.fail_v1(%s, %s, %s, %s, %s)".encode(),
            [[message], [fence], ["r" * 5000], ["t" * 5000], ["e" * 50_000]],
        )
        letters = list(world.owner.dead_letters.list(queue="held"))
        (letter,) = (one for one in letters if one.id == message)
        assert len(letter.reason) == len(letter.error_type or "") == MOST_TEXT
        assert len(letter.error or "") == 16 * 1024


def test_larger_payloads_are_a_setting(url: str) -> None:
    """Of whoever owns the schema and of admins; it is not for the owner's own messages."""
    big = b"x" * (2 * MAX_PAYLOAD)
    theirs = url.replace("postgres@", f"arguments_{PRODUCER}@")
    change = b"update walked.setting set max_payload = %s"
    with Queue(theirs, schema=SCHEMA, upkeep_every=None, max_payload=MOST_PAYLOAD) as producer:
        with pytest.raises(Exception, match="the payload has 2097152 bytes, 1048576 are allowed"):
            producer.publish(big, queue="edges")
        with connect(url, "admin") as admin:
            admin.execute(change, [len(big)])
            assert producer.publish(big, queue="edges").id is not None
            admin.execute(change, [MAX_PAYLOAD])
    with Queue(url, schema=SCHEMA, upkeep_every=None, max_payload=MOST_PAYLOAD) as owner:
        assert owner.publish(big, queue="edges", key="owner").id is not None
        owner.cancel([m.id for m in owner.messages(queue="edges", limit=1000)])
