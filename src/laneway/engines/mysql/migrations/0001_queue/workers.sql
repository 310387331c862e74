-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history call
-- it; several processes may share one. queues and kinds are JSON lists; no kinds: it handles every kind.
create table if not exists `laneway_worker` (
    id varbinary(255) primary key,
    name varbinary(255) not null,
    host varbinary(255) not null,
    pid bigint not null,
    version varbinary(255) not null,
    queues longblob not null,
    kinds longblob not null,
    slots bigint not null,
    used bigint not null,
    stopping boolean not null,
    started_at bigint not null,
    seen_at bigint not null
) engine = InnoDB row_format = dynamic;

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the next
-- holder has another fence. Upkeep deletes what has no lease.
create table if not exists `laneway_cancel_request` (
    message_id bigint not null,
    fence bigint not null,
    worker varbinary(255) not null,
    requested_at bigint not null,
    primary key (message_id, fence),
    key cancel_request_worker (worker)
) engine = InnoDB;

-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create or replace view `laneway_worker_v1` as
select convert(w.id using utf8mb4) collate utf8mb4_bin as id, convert(w.name using utf8mb4) collate utf8mb4_bin as name,
    convert(w.host using utf8mb4) collate utf8mb4_bin as host, w.pid, convert(w.version using utf8mb4) collate utf8mb4_bin as version,
    convert(w.queues using utf8mb4) collate utf8mb4_bin as queues, convert(w.kinds using utf8mb4) collate utf8mb4_bin as kinds,
    w.slots, w.used, timestampadd(microsecond, w.started_at, timestamp '1970-01-01 00:00:00') as started_at,
    timestampadd(microsecond, w.seen_at, timestamp '1970-01-01 00:00:00') as seen_at,
    case when w.seen_at < timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - 30000000
        then 'vanished' when w.stopping then 'stopping' else 'running' end as state
from `laneway_worker` w;
