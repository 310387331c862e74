-- Staging: what the tasks of a bulk publish bring, before their job is committed as a whole.

-- The staging tables that exist, by job. A task's row and its table commit together, complete.
-- A job of one frame has a row too, named like itself, for as long as it may be staged for.
create table "penstock".staged (
    name text collate "C" primary key,
    job text collate "C" not null,
    created_at timestamptz not null default clock_timestamp()
);
create index staged_job on "penstock".staged (job);

-- What every staging table looks like; itself it stays empty. Null means the job's default.
-- Lengths of time are microseconds: whole numbers travel through every way of copying.
-- channel_id is what channel_id_v1 says: tasks work side by side, the move of their rows does not.
create table "penstock".staged_row (
    id bigint not null default nextval('"penstock".message_id'),
    channel_id uuid not null,
    payload bytea not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C",
    content_type text,
    headers text,
    key text collate "C",
    key_window bigint,
    priority smallint,
    delay bigint,
    at timestamptz,
    expires_in bigint,
    expires_at timestamptz,
    max_attempts integer
);

-- Jobs and stream batches that were published: whoever comes a second time is recognised.
create table "penstock".publication (
    source text collate "C" not null,
    batch bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    published bigint not null default 0,
    existing bigint not null default 0,
    primary key (source, batch)
);
