-- How many attempts until success [day, queue, kind, attempt].
select a.day, a.queue, a.kind, a.attempt, count(*) as completed
from attempt a
where array_contains(:days, a.day) and a.outcome = 'completed'
group by a.day, a.queue, a.kind, a.attempt
