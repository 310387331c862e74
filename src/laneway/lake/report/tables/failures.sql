-- Failures [day, queue, kind, signature]; a signature is type, frame and text.
select s.day, s.queue, s.kind, s.type, s.frame, s.text,
    count(*) as n, count(distinct s.message_id) as messages, count(distinct s.channel) as channels,
    count_if(s.dead) as dead, min(s.ended_at) as first_at, max(s.ended_at) as last_at,
    left(min(s.said), 2000) as example
from signature s
where array_contains(:days, s.day)
group by s.day, s.queue, s.kind, s.type, s.frame, s.text
