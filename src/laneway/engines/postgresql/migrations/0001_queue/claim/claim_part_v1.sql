-- Part of claim: take one of the sixteen parts of the channels, for a claim that runs beside others.
--
-- Keeps: a part is held by one claim until it commits; all wakes of a channel are in one part. Of the
-- parts with work it takes the one whose work is oldest and that no other claim holds. Null: there is
-- none, or all work is in one part, so that there is nothing to divide.
--
-- Locks: the advisory lock of the queues, shared (a claim that scans all channels holds it alone), then
-- that of the part. Both are only tried, so nobody waits here.
--
-- p_limit: how many tokens and wakes of each queue to look at. p_tried: parts in which all channels were
-- locked by others. p_lock: the lock of the queues; the next sixteen numbers are those of the parts.
create or replace function "laneway".claim_part_v1(
    p_queues text[], p_turn_from timestamptz, p_wake_from timestamptz, p_limit integer, p_tried integer[],
    p_lock bigint, p_now timestamptz
) returns integer
language plpgsql
as $$
declare
    v_part integer;
begin
    perform pg_try_advisory_xact_lock_shared(p_lock);
    for v_part in
        select p.part from (select e.part, min(e.at) as at, count(*) over () as parts from (
            select channel_part_v1(t.channel_id) as part, t.turn as at
            from unnest(p_queues) q(name) cross join lateral (
                select k.channel_id, k.turn from token k
                where k.queue = q.name and k.turn >= p_turn_from and k.turn <= p_now
                order by k.turn limit p_limit) t
            union all
            select channel_part_v1(w.channel_id), w.at
            from unnest(p_queues) q(name) cross join lateral (
                select k.channel_id, k.at from wake k
                where k.queue = q.name and k.at >= p_wake_from and k.at <= p_now
                order by k.at limit p_limit) w
        ) e group by e.part) p
        where p.parts > 1 and p.part <> all(p_tried) order by p.at
    loop
        if pg_try_advisory_xact_lock(p_lock + 1 + v_part) then
            return v_part;
        end if;
    end loop;
    return null;
end
$$;
