-- What happened to dead letters [day, event]: died (again: after a redrive), redriven, discarded, and
-- recovered: completed after a redrive.
select s.day, s.ended_at as at, s.message_id, s.queue, s.channel, s.kind, 'died' as event, s.redriven_before as again,
    s.type, s.frame, s.text
from signature s
where array_contains(:days, s.day) and s.dead
union all
select a.day, a.ended_at, a.message_id, a.queue, a.channel, a.kind,
    case a.outcome when 'completed' then 'recovered' else a.outcome end, a.redriven_before, null, null, null
from attempt a
where array_contains(:days, a.day) and (a.outcome in ('redriven', 'discarded') or (a.outcome = 'completed' and a.redriven_before))
