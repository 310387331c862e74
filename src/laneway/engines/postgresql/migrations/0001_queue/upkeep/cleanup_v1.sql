-- Part of upkeep: delete expired keys and removed channels that are empty, and add up the counts of dead
-- letters.
create or replace function "laneway".cleanup_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint;
    v_channel_ids uuid[];
begin
    if exists (select from dedupe d where d.expires_at <= v_now) then
        delete from dedupe d using (
            select k.queue, k.key from dedupe k where k.expires_at <= v_now
            order by k.queue, k.key limit p_limit for update skip locked) k
        where d.queue = k.queue and d.key = k.key;
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    -- The lock excludes lock_channels_v1: nobody relies on a row that is deleted here.
    if exists (select from channel c where c.closing)
        and pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.channels', 0)) then
        v_channel_ids := array(
            select c.id from channel c
            where c.closing and not exists (select from message m where m.channel_id = c.id)
            order by c.id limit p_limit for no key update skip locked);
        -- Locked now: read again. Where one snapshot shows no message, the token and the wakes of that
        -- snapshot add up to zero and are deleted together; a publish that commits later has its own wake.
        with empty as materialized (
            select l.id from unnest(v_channel_ids) l(id)
            where not exists (select from message m where m.channel_id = l.id)
                and not exists (select from stray s where s.channel_id = l.id)
        ),
        tokens as (delete from token t where t.channel_id in (select e.id from empty e)),
        wakes as (delete from wake w where w.channel_id in (select e.id from empty e))
        delete from channel c where c.id in (select e.id from empty e);
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    if (select count(*) from (select from dead_count limit 100) x) = 100 then
        with gone as (
            delete from dead_count d where d.ctid = any(array(select k.ctid from dead_count k limit 10 * p_limit))
            returning d.queue, d.channel, d.n
        )
        insert into dead_total as t (queue, channel, n)
        select g.queue, g.channel, sum(g.n) from gone g group by g.queue, g.channel having sum(g.n) <> 0
        on conflict (queue, channel) do update set n = t.n + excluded.n;
        delete from dead_total t where t.n = 0;
    end if;
    return v_done + cleanup_events_v1(p_limit, v_now);
end
$$;
