-- Part of claim: of two sets of positions, one a priority, the lower ones.
create or replace function "laneway".lowest_positions_v1(
    p_pri smallint[], p_due timestamptz[], p_mid bigint[], q_pri smallint[], q_due timestamptz[], q_mid bigint[]
) returns "laneway".positions_v1
language sql immutable
as $$
    select array_agg(x.pri), array_agg(x.due), array_agg(x.mid)
    from (
        select distinct on (x.pri) x.pri, x.due, x.mid
        from (
            select * from unnest(p_pri, p_due, p_mid)
            union all
            select * from unnest(q_pri, q_due, q_mid)
        ) x(pri, due, mid)
        order by x.pri, x.due, x.mid
    ) x
$$;
