select f.day, f.queue, f.kind, f.type, f.frame, f.text, count(*) as n, count(distinct f.message_id) as messages,
    count(distinct f.channel) as channels, count(*) filter (where f.dead) as dead, min(f.ended_at) as first_at,
    max(f.ended_at) as last_at, left(min(f.said collate "C"), 2000) as example
from failed f
group by f.day, f.queue, f.kind, f.type, f.frame, f.text
