-- Part of claim: the positions of a channel with several priorities after its first p_taken messages
-- (of those picked) were taken: the last one of each priority, or the old position.
create or replace function "laneway".advanced_positions_v1(
    p_pri smallint[], p_due timestamptz[], p_mid bigint[],
    p_pris smallint[], p_dues timestamptz[], p_ids bigint[], p_taken bigint
) returns "laneway".positions_v1
language sql immutable
as $$
    select array_agg(b.pri), array_agg(coalesce(t.due, b.due)), array_agg(coalesce(t.id, b.mid))
    from unnest(p_pri, p_due, p_mid) b(pri, due, mid)
    left join (
        select distinct on (t.pri) t.pri, t.due, t.id
        from unnest(p_pris[1 : p_taken], p_dues[1 : p_taken], p_ids[1 : p_taken]) t(pri, due, id)
        order by t.pri, t.due desc, t.id desc
    ) t on t.pri = b.pri
$$;
