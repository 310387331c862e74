-- Part of claim: the next p_quota messages of a channel, of some lanes (null: all), in the order in which
-- they start: see claim_pick_v1. which: the number of the position (lane and priority) that each was found
-- after. seen: how many were found after each position, at most p_quota + 1; null: it was not looked at.
create or replace function "laneway".claim_pick_kinds_v1(
    p_channel_id uuid, p_of text[], p_pri smallint[], p_due timestamptz[], p_mid bigint[], p_lanes text[],
    p_quota bigint, p_skips bigint, p_now timestamptz,
    out ids bigint[], out rows "laneway".message[], out dues timestamptz[], out which integer[], out seen bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with found as materialized (
        select m.*, h.number::integer as number, h.priority
        from unnest(p_of, p_pri, p_due, p_mid) with ordinality h(lane, priority, due, mid, number)
        cross join lateral (
            select k.message, k.id, k.due
            from startable_kind_v1(p_channel_id, substr(h.lane, 2), h.priority, h.due, h.mid, p_now) k
            order by k.due, k.id limit p_quota + 1
        ) m
        where h.lane <> '-' and (p_lanes is null or h.lane = any(p_lanes))
    ),
    picked as (
        select m.id, m.message, m.due, m.number
        from (
            select f.*, row_number() over (order by f.due, f.id) > (p_skips + p_quota) / 10 as young from found f
        ) m
        order by m.young, m.priority desc, m.due, m.id limit p_quota
    )
    select array_agg(p.id), array_agg(p.message), array_agg(p.due), array_agg(p.number),
        array(
            select case when h.lane = '-' or not (p_lanes is null or h.lane = any(p_lanes)) then null
                else (select count(*) from found f where f.number = h.number) end
            from unnest(p_of) with ordinality h(lane, number) order by h.number)
    into ids, rows, dues, which, seen
    from picked p;
end
$$;
