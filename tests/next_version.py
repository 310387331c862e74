"""A version that is one migration newer than this one, made up: upgrades are tested with it."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module

import pytest

from laneway.engines.migration_files import Migration

# In the forms that a migration may have: on MySQL every statement can be repeated.
MADE_UP = {
    "postgresql": """
        alter table "laneway".message add column made_up bigint;
        create index message_made_up on "laneway".message (made_up) where made_up is not null;
        create table "laneway".made_up (id bigint primary key, note text not null default 'none');
        create or replace function "laneway".made_up_v1() returns bigint
        language sql as $$ select count(*) from "laneway".made_up $$;
        create view "laneway".note_v1 as select u.id, u.note from "laneway".made_up u;
        """,
    "mysql": """
create table if not exists `laneway_made_up` (id bigint primary key, note varbinary(16));
insert ignore into `laneway_made_up` (id) values (1);
create or replace view `laneway_note_v1` as select u.id, u.note from `laneway_made_up` u;
        """,
    "sqlite": """
        alter table "laneway_message" add column made_up integer;
        create index "laneway_message_made_up" on "laneway_message" (made_up)
            where made_up is not null;
        create table "laneway_made_up" (id integer primary key, note text not null default 'none');
        create view "laneway_note_v1" as select id, note from "laneway_made_up";
        """,
}


def add_migration(monkeypatch: pytest.MonkeyPatch, dialect: str) -> int:
    """From now on this test is of the next version; the number of its migration."""
    schema = import_module(f"laneway.engines.{dialect}.schema")
    known: Sequence[Migration] = schema.migrations()
    newer = Migration(known[-1].number + 1, "made_up", MADE_UP[dialect])
    monkeypatch.setattr(schema, "migrations", lambda: (*known, newer))
    # What the shape is, was remembered.
    monkeypatch.setattr(schema, "shape", cache(schema.shape.__wrapped__))
    return newer.number
