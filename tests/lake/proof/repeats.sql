select f.day, f.queue, count(*) filter (where f.outcome = 'stale') as stale,
    count(*) filter (where f.outcome = 'stale' and f.reason = 'complete') as stale_complete,
    count(*) filter (where f.outcome = 'expired' and not f.dead) as again,
    (select count(*) from (select t.message_id from fact t where t.day = f.day and t.queue = f.queue and t.terminal
        group by t.message_id having count(*) > 1) d) as twice
from fact f
group by f.day, f.queue
