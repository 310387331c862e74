-- Part of upkeep: what nobody needs any more. Keys past their window, channels that were removed and
-- have drained, and the dead letters' counts added up.
create or replace function "penstock".tidy_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
set enable_seqscan = off
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

    -- Alone with the channel rows (see own_v1): nobody counts on a row that goes.
    if exists (select from channel c where c.closing)
        and pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.channels', 0)) then
        v_lanes := array(
            select c.id from channel c
            where c.closing and not exists (select from message m where m.channel_id = c.id)
            order by c.id limit p_limit for no key update skip locked);
        -- Owned now: look again. Where one snapshot shows no message, the token and the wakes of that
        -- snapshot add up to nothing and go together; a publish that commits later brings its own wake.
        with empty as materialized (
            select l.id from unnest(v_lanes) l(id)
            where not exists (select from message m where m.channel_id = l.id)
                and not exists (select from stray s where s.channel_id = l.id)
        ),
        tokens as (delete from token t where t.channel_id in (select e.id from empty e)),
        wakes as (delete from wake w where w.channel_id in (select e.id from empty e))
        delete from channel c where c.id in (select e.id from empty e);
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;

    if (select count(*) from (select from dead_count limit 1000) x) = 1000 then
        with gone as (delete from dead_count d returning d.queue, d.channel, d.n)
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, sum(g.n) from gone g group by g.queue, g.channel having sum(g.n) <> 0;
    end if;
    return v_done + sweep_mail_v1(p_limit, v_now);
end
$$;
