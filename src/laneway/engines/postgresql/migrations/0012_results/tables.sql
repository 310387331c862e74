-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table "laneway".result (
    message_id bigint primary key,
    ended_at timestamptz not null,
    expires_at timestamptz not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    outcome text not null,
    reason text,
    error_type text,
    error text,
    content_type text,
    payload bytea
);
create index result_expiry on "laneway".result (expires_at);

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table "laneway".progress (
    message_id bigint primary key,
    fence bigint not null,
    at timestamptz not null,
    share double precision,
    note text
);
create index progress_at on "laneway".progress (at);
