-- Part of claim: lock the rows of channels, and create those that are missing.
--
-- Keeps: whoever holds a channel's row owns its token and its wakes. What another claim holds is skipped.
--
-- Locks: channel rows with SKIP LOCKED. The insert may wait for another session that does the same, so it
-- is done only while nothing is held (p_insert), in id order, and for no longer than claim's lock_timeout: then
-- one row after the other, without those whose transaction stays open.
--
-- p_new: those of the channels that have no row yet; their names are in the wakes, p_wakes.
-- Answers the type owned_v1 (tables.sql).
create or replace function "laneway".claim_own_v1(
    p_channels uuid[], p_new uuid[], p_wakes tid[], p_insert boolean, p_now timestamptz
) returns "laneway".owned_v1
language plpgsql
as $$
declare
    v_owned "laneway".owned_v1;
    v_id uuid;
begin
    if p_new is not null and p_insert then
        begin
            insert into channel (id, queue, name)
            select distinct on (w.channel_id) w.channel_id, w.queue, w.channel
            from wake w where w.ctid = any(p_wakes) and (w.channel_id in (select n from unnest(p_new) n)) is true
            order by w.channel_id
            on conflict do nothing;
        exception when lock_not_available then
            perform set_config('lock_timeout', '5ms', true);
            foreach v_id in array p_new loop
                begin
                    insert into channel (id, queue, name)
                    select w.channel_id, w.queue, w.channel
                    from wake w where w.ctid = any(p_wakes) and w.channel_id = v_id limit 1
                    on conflict do nothing;
                exception when lock_not_available then
                    null;
                end;
            end loop;
        end;
    end if;
    select coalesce(array_agg(c.id), '{}'), array_agg(c.tid), array_agg(c.queue), bool_and(c.plain),
        exists (select from listener l where l.until > p_now)
    into v_owned
    from (
        select k.id, k.ctid as tid, k.queue,
            k.weight = 1 and k.concurrency is null and k.rate is null and not k.paused as plain
        from channel k where k.id = any(p_channels) for no key update skip locked
    ) c;
    return v_owned;
end
$$;
