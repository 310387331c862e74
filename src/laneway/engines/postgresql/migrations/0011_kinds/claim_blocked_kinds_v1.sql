-- Part of claim: whether messages of these lanes wait for a limit or a pause ('blocked'), or none is there
-- ('empty'), as far as a hundred channels tell that wait for a wake.
create or replace function "laneway".claim_blocked_kinds_v1(p_queues text[], p_lanes text[], p_now timestamptz)
returns text
language sql stable
as $$
    select case when exists (
        select from unnest(p_queues) q(name) cross join lateral (
            select k.lanes from "laneway".token k where k.queue = q.name and k.turn is null and k.n > 0 limit 100) t
        where t.lanes && p_lanes
    ) or exists (
        select from unnest(p_queues) q(name) cross join lateral (
            select k.lanes from "laneway".token k where k.queue = q.name and k.turn > p_now order by k.turn limit 100) t
        where t.lanes && p_lanes
    ) then 'blocked' else 'empty' end
$$;
