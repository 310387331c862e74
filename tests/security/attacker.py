"""A database user who plants everything that a careless function with other rights would trip on.

Each planted thing behaves as the real one for its maker, and raises if it is run with the rights of
somebody else.
"""

import psycopg

HIJACKED = "hijacked"
_TRAP = (
    "create function attic.trap() returns void language plpgsql as $$ begin "
    "if current_user <> session_user then raise exception 'hijacked' using errcode = 'PNXXX'; "
    "end if; end $$"
)
# name(arguments) -> result, and the real thing.
_FUNCTIONS = {
    "length(x text) returns integer": "pg_catalog.length(x)",
    "octet_length(x bytea) returns integer": "pg_catalog.octet_length(x)",
    "now() returns timestamptz": "pg_catalog.now()",
    "clock_timestamp() returns timestamptz": "pg_catalog.clock_timestamp()",
    "nextval(x regclass) returns bigint": "pg_catalog.nextval(x)",
    "pg_notify(x text, y text) returns void": "pg_catalog.pg_notify(x, y)",
    "sha256(x bytea) returns bytea": "pg_catalog.sha256(x)",
    "convert_to(x text, y name) returns bytea": "pg_catalog.convert_to(x, y)",
    "cardinality(x anyarray) returns integer": "pg_catalog.cardinality(x)",
    "to_regclass(x text) returns regclass": "pg_catalog.to_regclass(x)",
    "quote_ident(x text) returns text": "pg_catalog.quote_ident(x)",
    "pg_current_xact_id() returns xid8": "pg_catalog.pg_current_xact_id()",
    "current_setting(x text) returns text": "pg_catalog.current_setting(x)",
    "md5(x text) returns text": "pg_catalog.md5(x)",
}
_COMPARED = ("bigint", "text", "timestamptz", "uuid", "integer", "boolean")
_SIGNS = ("=", "<>", "<", ">", "<=", ">=")
_NAMES = (
    "select c.relname, p.what from pg_class c join pg_namespace n on n.oid = c.relnamespace, "
    "(values ('relation')) p(what) where n.nspname = %(s)s and c.relkind in ('r', 'p', 'v', 'S') "
    "union all select p.proname, 'function' from pg_proc p join pg_namespace n "
    "on n.oid = p.pronamespace where n.nspname = %(s)s"
)


class Attacker:
    """A connection of a user who may create temporary things and owns the schema ``attic``, which
    comes first wherever a name is looked up."""

    def __init__(self, owner_url: str, login: str, schema: str) -> None:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute("drop schema if exists attic cascade")
            owner.execute(f'create schema attic authorization "{login}"'.encode())
            names = owner.execute(_NAMES.encode(), {"s": schema}).fetchall()
        self.relations = sorted({name for name, what in names if what == "relation"})
        self.functions = sorted({name for name, what in names if what == "function"})
        self.connection = psycopg.connect(
            owner_url.replace("postgres@", f"{login}@"), autocommit=True
        )
        self._plant()

    def _plant(self) -> None:
        run = self._run
        run(_TRAP)
        for name in self.relations:
            run(f"create temp table {name} (id bigint, queue text, channel text, number integer)")
            run(f"create table attic.{name} (id bigint, queue text, channel text, number integer)")
        for name in self.functions:
            for place in ("attic", "pg_temp"):
                run(
                    f"create function {place}.{name}(variadic x text[] default '{{}}') returns "
                    "void language plpgsql as $$ begin perform attic.trap(); end $$"
                )
        for head, real in _FUNCTIONS.items():
            for place in ("attic", "pg_temp"):
                # Not inlined: what is inlined would be looked at when it is planned.
                run(
                    f"create function {place}.{head} language plpgsql as "
                    f"$$ begin perform attic.trap(); return {real}; end $$"
                    if "void" not in head
                    else f"create function {place}.{head} language plpgsql as "
                    f"$$ begin perform attic.trap(); perform {real}; end $$"
                )
        for kind in _COMPARED:
            for number, sign in enumerate(_SIGNS):
                name = f"attic.compare_{kind}_{number}"
                run(
                    f"create function {name}(x {kind}, y {kind}) returns boolean language plpgsql "
                    f"as $$ begin perform attic.trap(); return x operator(pg_catalog.{sign}) y; "
                    "end $$"
                )
                run(
                    f"create operator attic.{sign} (leftarg = {kind}, rightarg = {kind}, "
                    f"function = {name})"
                )
        run("set search_path = attic, pg_temp, pg_catalog")

    def planted_rows(self) -> int:
        """How many rows anybody wrote into what was planted."""
        return sum(
            self._number(f"table {place}.{name}")
            for name in self.relations
            for place in ("pg_temp", "attic")
        )

    def _number(self, text: str) -> int:
        return len(self.connection.execute(text.encode()).fetchall())

    def _run(self, text: str) -> None:
        self.connection.execute(text.encode())

    def close(self) -> None:
        self.connection.close()
