select f.day, f.queue, f.kind, f.attempt, count(*) as completed
from fact f where f.outcome = 'completed' group by f.day, f.queue, f.kind, f.attempt
