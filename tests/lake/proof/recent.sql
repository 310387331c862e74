select p.queue, p.channel,
    (select count(*) from fact f where f.queue = p.queue and f.channel = p.channel and f.outcome = 'completed' and f.slot >= %(now)s - interval '1 day') as completed,
    (select count(*) from fact f where f.queue = p.queue and f.channel = p.channel and f.failing and f.slot >= %(now)s - interval '1 day') as failing,
    (select count(*) from fact f where f.queue = p.queue and f.channel = p.channel and f.dead and f.slot >= %(now)s - interval '1 day') as died,
    (select count(*) from fact f where f.queue = p.queue and f.channel = p.channel and f.outcome = 'completed' and f.slot >= %(now)s - interval '1 hour') as last_completed,
    (select count(*) from fact f where f.queue = p.queue and f.channel = p.channel and f.failing and f.slot >= %(now)s - interval '1 hour') as last_failing,
    (select count(*) from live l where l.queue = p.queue and l.channel = p.channel and l.state = 'waiting') as waiting,
    (select extract(epoch from max(l.seen_at - l.due))::double precision from live l
        where l.queue = p.queue and l.channel = p.channel and l.state = 'waiting') as oldest_s
from (
    select f.queue, f.channel from fact f where f.queue <> '' and f.slot >= %(now)s - interval '1 day'
    union
    select l.queue, l.channel from live l where l.state = 'waiting'
) p
