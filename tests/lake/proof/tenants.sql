select f.day, f.queue, f.channel, count(*) filter (where f.begun) as starts,
    count(*) filter (where f.outcome = 'completed') as completed, count(*) filter (where f.failing) as failing,
    coalesce(sum(f.ran), 0)::double precision / 1000000 as run_s,
    coalesce(sum(f.ran) filter (where f.failing), 0)::double precision / 1000000 as wasted_s,
    coalesce(sum(f.payload_size) filter (where f.begun), 0) as bytes
from fact f where f.queue <> ''
group by f.day, f.queue, f.channel
