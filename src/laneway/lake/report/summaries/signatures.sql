-- Every failure ever seen [queue, kind, signature]: since when, how often in the last 24 hours, and whether it is new:
-- first seen in these hours, in a lake with older history.
select f.queue, f.kind, f.type, f.frame, f.text, sum(f.n) as n, sum(f.dead) as dead, max(f.channels) as channels,
    min(f.first_at) as first_at, max(f.last_at) as last_at,
    coalesce(sum(f.n) filter (where f.day = to_date(:now)), 0) as today,
    coalesce(sum(f.n) filter (where f.day = date_sub(to_date(:now), 1)), 0) as yesterday,
    min(f.first_at) >= :now - interval 24 hours
        and (select min(h.hour) from hours h) < :now - interval 24 hours as is_new,
    max_by(f.example, f.last_at) as example
from failures f
group by f.queue, f.kind, f.type, f.frame, f.text
