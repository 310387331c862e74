select f.day, f.ended_at as at, f.message_id, f.queue, f.channel, f.kind, 'died' as event, f.came_back as again, f.type, f.frame, f.text
from failed f where f.dead
union all
select f.day, f.ended_at, f.message_id, f.queue, f.channel, f.kind, f.outcome, f.came_back, null, null, null
from fact f where f.outcome in ('redriven', 'discarded')
union all
select f.day, f.ended_at, f.message_id, f.queue, f.channel, f.kind, 'recovered', f.came_back, null, null, null
from fact f where f.outcome = 'completed' and f.came_back
