-- Part of counting: the first count, and the first one after the history was not kept for a time. Counts what
-- there is, once, as it was at the noted transaction number: what has ended or died since then is taken back,
-- because it will be counted from the history.
create or replace function "laneway".count_begin_v1(p_state "laneway".counting)
returns boolean
language plpgsql
as $$
begin
    -- Such a job got its ids after to_id was noted, and its number before to_xid was: note both again.
    if exists (select from staged_count s where s.xid < p_state.to_xid and s.last_id > p_state.to_id) then
        return false;
    end if;
    delete from live_count;
    with late as materialized (
        select s.at, s.last_id from staged_count s where s.xid >= p_state.to_xid
    ),
    part as (
        select m.queue, m.kind, count(*) as live, 0::bigint as dead from message m
        where m.id <= p_state.to_id
            and not exists (select from late s where s.at = m.first_published_at and m.id <= s.last_id)
        group by m.queue, m.kind
        union all
        select d.queue, d.kind, 0, count(*) from dead d
        where d.id <= p_state.to_id
            and not exists (select from late s where s.at = d.first_published_at and d.id <= s.last_id)
        group by d.queue, d.kind
        union all
        select h.queue, h.kind, -sum(e.live), -sum(e.dead)
        from history h cross join lateral count_effect_v1(h.outcome, h.dead) e
        where h.xid >= p_state.to_xid and h.message_id <= p_state.to_id
            and not exists (select from late s where s.at = h.first_published_at and h.message_id <= s.last_id)
        group by h.queue, h.kind
    )
    insert into live_count (queue, kind, live, dead)
    select p.queue, p.kind, sum(p.live), sum(p.dead) from part p
    group by p.queue, p.kind having sum(p.live) <> 0 or sum(p.dead) <> 0;
    update staged_count s set counted = true where s.xid < p_state.to_xid;
    return true;
end
$$;
