select f.day, f.queue, f.channel, f.kind, f.message_id, count(*) as expired, count(distinct f.worker) as workers,
    bool_or(f.dead) as dead, min(f.ended_at) as first_at, max(f.ended_at) as last_at,
    array_agg(distinct f.worker collate "C" order by f.worker collate "C") as worker_names
from fact f where f.outcome = 'expired'
group by f.day, f.queue, f.channel, f.kind, f.message_id
