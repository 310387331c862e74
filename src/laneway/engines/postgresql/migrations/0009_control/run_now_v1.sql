-- run now: messages that are scheduled for later become due now.
--
-- Keeps: the order of a channel (priority, due, id), with the new due time. A message is claimed, cancelled
-- or made due, one after the other: this locks the channel, as these do. Locks channel rows in id order.
create or replace function "laneway".run_now_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_ids bigint[];
    v_queues text[];
begin
    perform lock_channels_v1(array_agg(x.queue), array_agg(x.channel))
    from (select distinct m.queue, m.channel from message m where m.id = any(p_ids)) x;
    -- Read once the channels are locked: later than the time of every claim that owned them.
    v_now := write_time_v1(p_now);
    with later as materialized (
        select m.id, m.channel_id, m.due, m.priority, m.queue, m.channel,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from message m
        where m.id = any(p_ids) and m.due > v_now
            and not exists (select from lease l where l.message_id = m.id offset 0)
            -- What waits behind a running message of its key (replace_v1) stays there.
            and not exists (select from dedupe k
                where k.queue = m.queue and k.key = m.key and k.message_id = m.id and k.behind is not null offset 0)
    ),
    moved as (
        update message m set due = v_now from later l where m.id = l.id returning m.id
    ),
    -- Its own wake counts it at the old time: one fewer just after that, and one more now.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select l.due + interval '1 microsecond', l.channel_id, l.due, l.id, -1, l.priority, l.queue, l.channel, l.lane
        from later l
        union all
        select v_now, l.channel_id, v_now, l.id, 1, l.priority, l.queue, l.channel, l.lane from later l
    )
    select coalesce(array_agg(l.id), '{}'), array_agg(l.queue) into v_ids, v_queues
    from later l join moved m on m.id = l.id;
    perform notify_workers_v1(v_queues, v_now);
    return query
    select x.id, case
        when x.id = any(v_ids) then 'due'
        when exists (select from lease l where l.message_id = x.id) then 'leased'
        when exists (select from message m where m.id = x.id) then 'waiting'
        when exists (select from dead d where d.id = x.id) then 'dead'
        else 'absent' end
    from (select distinct u.id from unnest(p_ids) u(id)) x;
end
$$;
