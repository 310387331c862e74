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
