-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history
-- call it; several processes may share one. kinds: what it handles, {} if every kind.
create table "laneway".worker (
    id text collate "C" primary key,
    name text collate "C" not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text[] not null,
    kinds text[] not null,
    slots integer not null,
    used integer not null,
    stopping boolean not null,
    started_at timestamptz not null,
    seen_at timestamptz not null
) with (fillfactor = 50);

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the
-- next holder has another fence. Upkeep deletes what has no lease.
create table "laneway".cancel_request (
    message_id bigint not null,
    fence bigint not null,
    worker text collate "C" not null,
    requested_at timestamptz not null,
    primary key (message_id, fence)
);
create index cancel_request_worker on "laneway".cancel_request (worker);

-- Dead letters of all queues, the newest first.
create index dead_time on "laneway".dead (died_at, id);
