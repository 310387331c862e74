-- Part of upkeep: what nobody needs any more. Keys past their window, channels that were removed and
-- have drained, resting tokens, and the dead letters' counts added up.
create or replace function "penstock".tidy_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint;
    v_lanes uuid[];
begin
    if exists (select from dedupe d where d.expires_at <= v_now) then
        delete from dedupe d using (
            select k.queue, k.key from dedupe k where k.expires_at <= v_now
            order by k.queue, k.key limit p_limit for update skip locked) k
        where d.queue = k.queue and d.key = k.key;
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    if exists (select from channel c where c.closing) then
        v_lanes := array(
            select c.id from channel c
            where c.closing and not exists (select from message m where m.channel_id = c.id)
            order by c.id limit p_limit for no key update skip locked);
        -- Owned now: look again, and at what could still be counting on the row.
        v_lanes := array(
            select l from unnest(v_lanes) l
            where not exists (select from message m where m.channel_id = l)
                and not exists (select from stray s where s.channel_id = l));
        if cardinality(v_lanes) > 0 then
            delete from token t where t.channel_id = any(v_lanes);
            delete from wake w where w.channel_id = any(v_lanes) and w.n <= 0;
            delete from channel c where c.id = any(v_lanes);
            v_done := v_done + cardinality(v_lanes);
        end if;
    end if;

    if (select count(*) from (select from dead_count limit 1000) x) = 1000 then
        with gone as (delete from dead_count d returning d.queue, d.channel, d.n)
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, sum(g.n) from gone g group by g.queue, g.channel having sum(g.n) <> 0;
    end if;
    return v_done;
end
$$;
