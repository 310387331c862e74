-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history call
-- it; several processes may share one. queues and kinds are JSON lists; no kinds: it handles every kind.
create table "laneway_worker" (
    id text primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text not null,
    kinds text not null,
    slots integer not null,
    used integer not null,
    stopping integer not null,
    started_at integer not null,
    seen_at integer not null
) without rowid;

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the next
-- holder has another fence. Upkeep deletes what has no lease.
create table "laneway_cancel_request" (
    fence integer not null,
    message_id integer not null,
    worker text not null,
    requested_at integer not null,
    primary key (fence, message_id)
) without rowid;

-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create view "laneway_worker_v1" as
select id, name, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < (julianday('now') - 2440587.5) * 86400000000 - 30000000 then 'vanished'
        when stopping then 'stopping' else 'running' end as state
from "laneway_worker";
