-- The lake's catalog: which part of the history is in which files, and how far that was verified. A
-- batch is a range of (settled, id). States: planned -> written -> verified -> purged.
create table if not exists `laneway_lake_commit` (
    lake varbinary(255) not null,
    batch bigint not null,
    from_xid bigint not null,
    from_id bigint not null,
    to_xid bigint not null,
    to_id bigint not null,
    `rows` bigint not null,
    checksum varbinary(40) not null,
    first_ended_at bigint not null,
    last_ended_at bigint not null,
    state varbinary(16) not null,
    planned_at bigint not null,
    primary key (lake, batch),
    key lake_commit_open (lake, state, from_xid)
) engine = InnoDB;

-- One row per file; batches and replaces are JSON lists. While staged is set, the file is at that path,
-- and the files that it replaces may still exist.
create table if not exists `laneway_lake_file` (
    lake varbinary(255) not null,
    path varbinary(512) not null,
    day bigint not null,
    batches longblob not null,
    `rows` bigint not null,
    checksum varbinary(40) not null,
    size bigint not null,
    staged varbinary(512),
    replaces longblob,
    primary key (lake, path)
) engine = InnoDB row_format = dynamic;

-- Private: before which stamp every lake is certain to have the history; null if there is no lake. One
-- lookup per lake, however many batches there are.
create or replace view `laneway_lake_sure` as
with recursive name (lake) as (
    select min(c.lake) from `laneway_lake_commit` c
    union all
    select (select min(c.lake) from `laneway_lake_commit` c where c.lake > n.lake) from name n where n.lake is not null
)
select min(coalesce(
    (select min(c.from_xid) from `laneway_lake_commit` c where c.lake = n.lake and c.state in ('planned', 'written')),
    (select c.to_xid from `laneway_lake_commit` c where c.lake = n.lake order by c.batch desc limit 1))) as stamp
from name n
where n.lake is not null;
