-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table "laneway_result" (
    message_id integer primary key,
    ended_at integer not null,
    expires_at integer not null,
    queue text not null,
    channel text not null,
    kind text not null,
    outcome text not null,
    reason text,
    error_type text,
    error text,
    content_type text,
    payload blob
);
create index "laneway_result_expiry" on "laneway_result" (expires_at);

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table "laneway_progress" (
    message_id integer primary key,
    fence integer not null,
    at integer not null,
    share real,
    note text
);
create index "laneway_progress_at" on "laneway_progress" (at);
