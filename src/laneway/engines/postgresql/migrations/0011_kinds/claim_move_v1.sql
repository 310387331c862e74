-- Part of claim: messages that were published before their queue was claimed by kind, from now on found by
-- their kinds: of each channel and priority the next thousand that are due. Answers positions: of the lanes
-- that got messages, and of '-' where more are left.
--
-- Keeps: the caller has locked the channels, so nobody else claims or moves these messages.
create or replace function "laneway".claim_move_v1(
    p_owned uuid[], p_wakes tid[], p_now timestamptz,
    out channels uuid[], out lanes text[], out pri smallint[], out due timestamptz[], out mid bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with start as materialized (
        select distinct on (s.channel_id, s.priority) s.channel_id, s.priority, s.due, s.mid
        from (
            select o.id as channel_id, p.priority, p.due, p.mid
            from unnest(p_owned) o(id) cross join lateral token_of_v1(o.id) t
            cross join unnest(t.pri, t.due, t.mid, t.lanes) p(priority, due, mid, lane)
            where coalesce(p.lane, '-') = '-'
            union all
            select w.channel_id, w.priority, min(w.due), min(w.message_id - 1)
            from wake w where w.ctid = any(p_wakes) and w.n > 0 and w.lane in ('', '-')
                and (w.channel_id in (select o from unnest(p_owned) o)) is true
            group by w.channel_id, w.priority
        ) s
        order by s.channel_id, s.priority, s.due, s.mid
    ),
    picked as materialized (
        select s.channel_id, s.priority, m.*, count(*) over (partition by s.channel_id, s.priority) as n
        from start s cross join lateral (
            select k.ctid as tid, k.id, k.due, '=' || k.kind as lane
            from message k
            where k.channel_id = s.channel_id and k.priority = s.priority and (k.due, k.id) > (s.due, s.mid)
                and k.due <= p_now and k.by_kind is not true
                and not exists (select from lease e where e.message_id = k.id offset 0)
            order by k.due, k.id limit 1000
        ) m
    ),
    moved as (
        update message m set by_kind = true where m.ctid = any(array(select p.tid from picked p))
    ),
    position as (
        (select distinct on (p.channel_id, p.priority, p.lane) p.channel_id, p.lane, p.priority, p.due, p.id - 1 as mid
        from picked p order by p.channel_id, p.priority, p.lane, p.due, p.id)
        union all
        (select distinct on (p.channel_id, p.priority) p.channel_id, '-', p.priority, p.due, p.id
        from picked p where p.n = 1000 order by p.channel_id, p.priority, p.due desc, p.id desc)
    )
    select array_agg(p.channel_id), array_agg(p.lane), array_agg(p.priority), array_agg(p.due), array_agg(p.mid)
    into channels, lanes, pri, due, mid from position p;
end
$$;
