-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create view "laneway_worker_v1" as
select id, name, host, pid, version, queues, kinds, slots, used, started_at, seen_at,
    case when seen_at < (julianday('now') - 2440587.5) * 86400000000 - 30000000 then 'vanished'
        when stopping then 'stopping' else 'running' end as state
from "laneway_worker";
