"""Laneway's schema among an application's Alembic migrations.

In a revision, which names the version of Laneway's schema that it leads to::

    from laneway.integrations import alembic as laneway

    def upgrade() -> None:
        laneway.install(version=1)

    def downgrade() -> None:
        laneway.uninstall()

In ``env.py``, so that autogenerate proposes nothing about Laneway's tables::

    context.configure(..., include_name=laneway.include_name)
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from alembic import op

from laneway.client.shared.options import ENGINES
from laneway.contract import Engine
from laneway.drivers.caller.sync import run_on
from laneway.errors import InvalidOption, SchemaMissing
from laneway.migrate import install_sql, uninstall_sql, upgrade_sql
from laneway.plan import Plan

__all__ = ["include_name", "include_name_of", "install", "uninstall", "upgrade"]


def install(*, version: int, schema: str = "laneway") -> None:
    """Creates the schema in this version, in the migration's transaction, or brings an older one up
    to it. Does nothing if it is there, or a newer one.

    >>> laneway.install(version=1)
    """
    dialect = _dialect()
    if op.get_context().as_sql:
        _print(install_sql(schema, dialect=dialect, version=version))
    else:
        _run(dialect, schema, lambda engine: engine.schema.install(version))


def upgrade(*, since: int, version: int, schema: str = "laneway") -> None:
    """Brings a schema of version ``since``, the one of the revision before, up to ``version``. Its
    ``downgrade()`` may be empty: an older Laneway works on a newer schema.

    >>> laneway.upgrade(since=1, version=2)
    """
    dialect = _dialect()
    if op.get_context().as_sql:
        _print(upgrade_sql(since, schema, dialect=dialect, version=version))
    else:
        _run(dialect, schema, lambda engine: engine.schema.upgrade(version))


def uninstall(*, schema: str = "laneway") -> None:
    """Removes the schema with all messages in it; does nothing if it is not there.

    >>> laneway.uninstall()
    """
    dialect = _dialect()
    if op.get_context().as_sql:
        _print(uninstall_sql(schema, dialect=dialect))
    else:
        _run(dialect, schema, _uninstall)


# Alembic's mapping has literals for keys, and a mapping of str is not one of those.
IncludeName = Callable[[str | None, str, Mapping[Any, str | None]], bool]


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """For ``context.configure(include_name=…)``: what is not Laneway's."""
    return _include_name(name, type_, parent_names)


def include_name_of(schema: str) -> IncludeName:
    """The same for a schema of another name, on MySQL and SQLite another prefix."""
    tables = {table for dialect in ("mysql", "sqlite") for table in _tables(dialect, schema)}

    def included(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
        if type_ == "schema":
            return name != schema
        return type_ != "table" or (
            name not in tables and parent_names.get("schema_name") != schema
        )

    return included


def _tables(dialect: str, schema: str) -> Iterator[str]:
    """Where Laneway has no schema of its own."""
    shape = import_module(f"laneway.engines.{dialect}.schema").shape(schema)
    return (f"{schema}_{name}" for kind, name in shape if kind == "table")


_include_name = include_name_of("laneway")


def _dialect() -> str:
    name = op.get_context().dialect.name
    found = {"mariadb": "mysql"}.get(name, name)
    if found not in ENGINES:
        raise InvalidOption(f"Laneway has no engine for {name}: use PostgreSQL, MySQL or SQLite")
    return found


def _print(script: str) -> None:
    """As it is: op.execute() would take its colons for parameters."""
    op.get_context().impl.static_output(script)


def _run(dialect: str, schema: str, plan: Callable[[Engine], Plan[None]]) -> None:
    package, name = ENGINES[dialect]
    engine = getattr(import_module(package), name)(schema, None)
    run_on(op.get_bind(), dialect, plan(engine))


def _uninstall(engine: Any) -> Plan[None]:
    try:
        yield from engine.schema.uninstall()
    except SchemaMissing:
        return
