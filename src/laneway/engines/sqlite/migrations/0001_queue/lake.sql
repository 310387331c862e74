-- The catalog of the lake: which part of the history is in which files, and in which state. A batch is a
-- range of ids (from_xid and to_xid are 0). States: planned -> written -> verified -> purged.
create table "laneway_lake_commit" (
    lake text not null,
    batch integer not null,
    from_xid integer not null,
    from_id integer not null,
    to_xid integer not null,
    to_id integer not null,
    rows integer not null,
    checksum text not null,
    first_ended_at integer not null,
    last_ended_at integer not null,
    state text not null check (state in ('planned', 'written', 'verified', 'purged')),
    planned_at integer not null,
    primary key (lake, batch)
) without rowid;

-- One row per file; batches and replaces are JSON lists. While staged is set, the file is at that path
-- and the files that it replaces may still exist.
create table "laneway_lake_file" (
    lake text not null,
    path text not null,
    day integer not null,
    batches text not null,
    rows integer not null,
    checksum text not null,
    size integer not null,
    staged text,
    replaces text,
    primary key (lake, path)
) without rowid;

create index "laneway_lake_commit_open" on "laneway_lake_commit" (lake, from_id) where state in ('planned', 'written');

-- Private: up to which id all lakes have verified the history; null if there is no lake. One lookup per
-- lake, however many batches there are.
create view "laneway_lake_sure" as
with recursive name (lake) as (
    select min(c.lake) from "laneway_lake_commit" c
    union all
    select (select min(c.lake) from "laneway_lake_commit" c where c.lake > n.lake) from name n where n.lake is not null
)
select min(coalesce(
    (select min(c.from_id) from "laneway_lake_commit" c where c.lake = n.lake and c.state in ('planned', 'written')),
    (select c.to_id from "laneway_lake_commit" c where c.lake = n.lake order by c.batch desc limit 1))) as id
from name n
where n.lake is not null;
