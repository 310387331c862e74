-- What Laneway is compared with: a table, its index, and one history row per message.
create table job (
    id bigserial primary key,
    channel text not null,
    status text not null default 'ready',
    due timestamptz not null default clock_timestamp(),
    until timestamptz,
    worker text,
    attempts integer not null default 0,
    payload bytea not null
);
create index job_ready on job (due, id) where status = 'ready';

create table job_history (
    id bigserial,
    xid bigint not null default pg_current_xact_id()::text::bigint,
    message_id bigint not null,
    fence bigint,
    attempt bigint not null,
    first_published_at timestamptz,
    published_at timestamptz,
    due timestamptz,
    claimed_at timestamptz,
    ended_at timestamptz not null,
    payload_size bigint,
    terminal boolean not null,
    dead boolean not null,
    priority smallint,
    queue text not null,
    channel text not null,
    kind text not null,
    worker text,
    outcome text not null,
    reason text,
    error_type text,
    error text
);
create index job_history_message on job_history (message_id);
