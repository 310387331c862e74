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
