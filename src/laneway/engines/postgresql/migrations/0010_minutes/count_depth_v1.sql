-- Part of counting: how many messages of each queue and kind have not ended, and the oldest due time of the queue,
-- noted with the minute and the hour of p_at; the last note of a minute stays.
create or replace function "laneway".count_depth_v1(p_at timestamptz, p_last timestamptz)
returns void
language plpgsql
as $$
begin
    -- Not before the next hour: until then these rows say that nothing is left.
    if date_trunc('hour', p_at, 'UTC') > date_trunc('hour', p_last, 'UTC') then
        delete from live_count k where k.live = 0 and k.dead = 0;
    end if;
    insert into minute as m (span, at, queue, kind, depth, oldest)
    select s.span, date_trunc(s.unit, p_at, 'UTC'), d.queue, d.kind, d.depth, d.oldest
    from (
        select k.queue, k.kind, greatest(k.live, 0) as depth, o.oldest
        from live_count k
        join (
            select q.queue, oldest_due_v1(q.queue, p_at) as oldest from (select distinct c.queue from live_count c) q
        ) o on o.queue = k.queue
        union all
        select '', '', 0, null
    ) d
    cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
    on conflict (span, at, queue, kind) do update set depth = excluded.depth, oldest = excluded.oldest;
end
$$;
