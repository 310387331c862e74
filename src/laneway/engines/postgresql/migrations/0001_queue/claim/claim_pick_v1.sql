-- Part of claim: the next p_quota messages of a channel that has several priorities, in the order in
-- which they start: the highest priority first, but one start in ten goes to the longest waiting.
-- rest: there are more than the quota.
create or replace function "laneway".claim_pick_v1(
    p_channel_id uuid, p_pri smallint[], p_due timestamptz[], p_mid bigint[], p_quota bigint, p_skips bigint,
    p_now timestamptz,
    out ids bigint[], out tids tid[], out dues timestamptz[], out pris smallint[], out rest boolean
)
language plpgsql
as $$
#variable_conflict use_column
begin
    select array_agg(m.id), array_agg(m.tid), array_agg(m.due), array_agg(m.priority), coalesce(max(m.seen) > p_quota, false)
    into ids, tids, dues, pris, rest
    from (
        select m.* from (
            select m.*, h.priority, count(*) over () as seen,
                row_number() over (order by m.due, m.id) > (p_skips + p_quota) / 10 as young
            from unnest(p_pri, p_due, p_mid) h(priority, due, mid)
            cross join lateral (
                select k.tid, k.id, k.due from startable_v1(p_channel_id, h.priority, h.due, h.mid, p_now) k
                order by k.due, k.id limit p_quota + 1
            ) m
        ) m
        order by m.young, m.priority desc, m.due, m.id limit p_quota
    ) m;
end
$$;
