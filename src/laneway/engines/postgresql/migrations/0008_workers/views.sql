-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create view "laneway".worker_v1 as
select w.id, w.name, w.host, w.pid, w.version, w.queues, w.kinds, w.slots, w.used, w.started_at, w.seen_at,
    case when w.seen_at < clock_timestamp() - interval '30 seconds' then 'vanished'
        when w.stopping then 'stopping' else 'running' end as state
from "laneway".worker w;
