-- Part of claim: of two sets of positions, one for each lane and priority, the lower ones.
create or replace function "laneway".lowest_lanes_v1(p "laneway".lanes_v1, q "laneway".lanes_v1)
returns "laneway".lanes_v1
language sql immutable
as $$
    select array_agg(x.lane), array_agg(x.pri), array_agg(x.due), array_agg(x.mid)
    from (
        select distinct on (x.lane, x.pri) x.lane, x.pri, x.due, x.mid
        from (
            select * from unnest(p.lanes, p.pri, p.due, p.mid)
            union all
            select * from unnest(q.lanes, q.pri, q.due, q.mid)
        ) x(lane, pri, due, mid)
        order by x.lane, x.pri, x.due, x.mid
    ) x
$$;
