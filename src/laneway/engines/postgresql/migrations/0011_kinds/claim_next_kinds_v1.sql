-- Part of claim: when something of these lanes may start next.
create or replace function "laneway".claim_next_kinds_v1(p_queues text[], p_lanes text[], p_now timestamptz)
returns timestamptz
language sql stable
as $$
    select min(least(
        (select k.turns[1] from "laneway".token k
        where l.lane <> '*' and k.queue = q.name and k.slots[1] = l.lane and k.turns[1] > p_now order by k.turns[1] limit 1),
        (select k.turns[2] from "laneway".token k
        where l.lane not in ('-', '*') and k.queue = q.name and k.slots[2] = l.lane and k.turns[2] > p_now order by k.turns[2] limit 1),
        (select k.turns[3] from "laneway".token k
        where l.lane not in ('-', '*') and k.queue = q.name and k.slots[3] = l.lane and k.turns[3] > p_now order by k.turns[3] limit 1),
        (select k.turns[4] from "laneway".token k
        where l.lane <> '-' and k.queue = q.name and k.slots[4] = l.lane and k.turns[4] > p_now
            and (l.lane <> '*' or k.lanes && p_lanes) order by k.turns[4] limit 1),
        (select w.at from "laneway".wake w
        where w.queue = q.name and w.lane = l.lane and w.lane <> '' and w.at > p_now order by w.at limit 1)))
    from unnest(p_queues) q(name) cross join unnest(p_lanes || '*'::text) l(lane)
$$;
