-- From now on these queues can be claimed by kind. Answers whether all that waits in them can be found so; a
-- caller who hears no asks again before its next claims.
--
-- Keeps: publishers see the row of kind_queue or have a transaction number below its horizon, because every
-- verb that appends wakes takes its number first (write_time_v1). What they append meanwhile has no lane; once
-- they have ended, a last look gives it one. Claims that did not see the row have ended when this returns:
-- they share a lock that this takes alone, as pause_queue_v1 does. Their channels get a wake.
--
-- Locks: the queues' advisory locks, in order of their names. Called again it waits for nobody.
create or replace function "laneway".by_kind_v1(p_queues text[], p_now timestamptz default null)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
set jit = off
as $$
declare
    v_now timestamptz;
    v_queue text;
    v_row "laneway".kind_queue;
    v_old boolean;
    v_all boolean := true;
begin
    for v_queue in
        select distinct q.name from unnest(p_queues) q(name)
        where not exists (select from kind_queue k where k.queue = q.name and k.settled) order by q.name
    loop
        v_all := false;
        if not exists (select from kind_queue k where k.queue = v_queue) then
            perform pg_advisory_xact_lock(hashtextextended(v_queue, 'pause'::regclass::oid::bigint));
            continue when exists (select from kind_queue k where k.queue = v_queue);
            v_now := write_time_v1(p_now);
            insert into kind_queue (queue) values (v_queue);
            insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
            select v_now, t.channel_id, v_now, 0, 0, 0, t.queue, c.name, '-'
            from token t join channel c on c.id = t.channel_id
            where t.queue = v_queue and (t.turn is not null or t.n <> 0 or t.pri <> '{}');
        else
            select k.* into v_row from kind_queue k where k.queue = v_queue and not k.settled for update skip locked;
            continue when not found;
            v_old := pg_snapshot_xmin(pg_current_snapshot())::text::bigint > v_row.horizon;
            if v_row.horizon is null then
                update kind_queue k set horizon = pg_current_xact_id()::text::bigint where k.queue = v_queue;
            elsif v_old then
                update kind_queue k set settled = true where k.queue = v_queue;
            end if;
        end if;
        -- What a claim is consuming now is locked: it has seen it.
        update wake w set lane = '-' where w.ctid = any(array(
            select k.ctid from wake k where k.queue = v_queue and k.lane = '' for update skip locked));
    end loop;
    return v_all;
end
$$;
