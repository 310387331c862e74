-- Part of diagnose: queues with work that could start, since when, and which kinds wait at their heads.
--
-- Bounded whatever waits: of 200 queues the oldest turn and wake, and the messages of the oldest 100 wakes
-- and 20 channels. claimed: when a message of the queue was last claimed, of the 200 leases that end last.
-- kinds: of messages published a minute ago or earlier; what is put back because nobody handles it is due
-- again soon. Queues that are paused are left out, and paused kinds.
create or replace function "laneway".waiting_work_v1(p_now timestamptz default null)
returns table (queue text, since timestamptz, claimed timestamptz, kinds text[])
language plpgsql
stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queue text := '';
begin
    for v_number in 1..200 loop
        select least(
            (select w.queue from wake w where w.queue > v_queue order by w.queue limit 1),
            (select t.queue from token t where t.queue > v_queue and t.turn is not null order by t.queue limit 1))
        into v_queue;
        exit when v_queue is null;
        queue := v_queue;
        if exists (
            select from pause p where p.queue = v_queue and p.kind is null and (p.until is null or p.until > v_now)
        ) then
            continue;
        end if;
        since := least(
            (select w.at from wake w where w.queue = v_queue and w.at <= v_now and w.n > 0 order by w.at limit 1),
            (select t.turn from token t where t.queue = v_queue and t.turn <= v_now order by t.turn limit 1));
        claimed := (
            select max(l.claimed_at)
            from (select k.message_id, k.claimed_at from lease k order by k.until desc limit 200) l
            where exists (select from message m where m.id = l.message_id and m.queue = v_queue));
        kinds := array(
            select distinct m.kind
            from (
                select w.message_id as id from (
                    select k.message_id from wake k where k.queue = v_queue and k.at <= v_now + interval '1 minute'
                    order by k.at limit 100) w
                union
                select h.id from (
                    select t.channel_id from token t
                    where t.queue = v_queue and t.turn <= v_now order by t.turn limit 20) c
                cross join lateral (
                    select m.id from message m where m.channel_id = c.channel_id
                    order by m.priority, m.due, m.id limit 5) h
            ) x
            cross join lateral (select k.kind, k.published_at from message k where k.id = x.id offset 0) m
            where m.published_at < v_now - interval '1 minute'
                and not exists (select from lease l where l.message_id = x.id)
                and not exists (
                    select from pause p where p.queue = v_queue and p.kind = m.kind
                        and (p.until is null or p.until > v_now)));
        return next;
    end loop;
end
$$;
