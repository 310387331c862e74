-- Part of claim: the positions of a channel after its first p_taken messages (of those that
-- claim_pick_kinds_v1 found) were taken: the last one taken after each. A position after which nothing is
-- left is dropped.
create or replace function "laneway".advanced_lanes_v1(
    p "laneway".lanes_v1, p_seen bigint[], p_which integer[], p_dues timestamptz[], p_ids bigint[], p_taken bigint
) returns "laneway".lanes_v1
language sql immutable
as $$
    select array_agg(b.lane), array_agg(b.pri), array_agg(b.due), array_agg(b.mid)
    from (
        select b.lane, b.pri, coalesce(t.due, b.due) as due, coalesce(t.id, b.mid) as mid
        from unnest(p.lanes, p.pri, p.due, p.mid, p_seen) with ordinality b(lane, pri, due, mid, seen, number)
        left join (
            select distinct on (t.number) t.number, t.due, t.id, count(*) over (partition by t.number) as n
            from unnest(p_which[1 : p_taken], p_dues[1 : p_taken], p_ids[1 : p_taken]) t(number, due, id)
            order by t.number, t.due desc, t.id desc
        ) t on t.number = b.number
        where b.seen is null or b.seen > coalesce(t.n, 0)
    ) b
$$;
