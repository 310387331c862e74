-- Staging: what the tasks of a bulk publish bring, before their job is committed as a whole.

-- The staging tables that exist, by job. A task's row and its table commit together, complete.
-- A job of one frame has only a row of its own, named like itself, for as long as it may be loaded for.
create table "laneway".staged (
    name text collate "C" primary key,
    job text collate "C" not null,
    created_at timestamptz not null default clock_timestamp()
);
create index staged_job on "laneway".staged (job);

-- Jobs of one frame: how many messages of each channel, kind, priority and due time a part holds. Noted by its task, so
-- that the commit of the job need not read them.
create sequence "laneway".staged_part_id;
create table "laneway".staged_work (
    part bigint primary key,
    channel_ids uuid[] not null,
    queues text[] collate "C" not null,
    channels text[] collate "C" not null,
    kinds text[] collate "C" not null,
    priorities smallint[] not null,
    dues timestamptz[] not null,
    by_kind boolean[] not null,
    counts bigint[] not null
);

-- Batches of a stream are staged in tables and then moved. What every staging table looks like; itself it stays empty. Null means the job's default.
-- Durations are microseconds: integers survive every way of copying.
-- channel_id is computed by channel_id_v1 in the tasks, which run in parallel; publishing their rows does not.
create table "laneway".staged_row (
    id bigint not null default nextval('"laneway".message_id'),
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

-- Jobs and stream batches that were published, so that a second try is recognised.
create table "laneway".publication (
    source text collate "C" not null,
    batch bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    published bigint not null default 0,
    existing bigint not null default 0,
    primary key (source, batch)
);

-- What each bulk publish brought, by queue and kind, until counting (minutes/counts.sql) has added it up. Its messages
-- got their ids, up to last_id, before the publish and were all published at `at`.
create table "laneway".staged_count (
    xid bigint not null default pg_current_xact_id()::text::bigint,
    at timestamptz not null,
    last_id bigint not null,
    queue text collate "C" not null,
    kind text collate "C" not null,
    n bigint not null,
    counted boolean not null default false
);
