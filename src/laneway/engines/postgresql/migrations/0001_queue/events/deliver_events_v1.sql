-- Part of add_events_v1, and of the verbs that end messages: write events to the mailbox of each listener
-- whose filter matches, one row per kind of event and statement; and notify the listeners that sleep.
--
-- Keeps: it only appends, so it waits for nobody and fails no transaction. A mailbox that is not
-- read gets no rows beyond 100,000 of all listeners' events, and none after its `until`.
create or replace function "laneway".deliver_events_v1(
    p_what text[], p_ids bigint[], p_queues text[], p_channels text[], p_kinds text[], p_now timestamptz
) returns void
language plpgsql
as $$
declare
    v_mailboxes text[];
begin
    with posted as (
        insert into mail (listener_id, number, at, what, ids, queues, channels, kinds)
        select l.id, nextval('mail_number'), p_now, x.what,
            array_agg(x.id), array_agg(x.queue), array_agg(x.channel), array_agg(x.kind)
        from listener l
        cross join unnest(p_what, p_ids, p_queues, p_channels, p_kinds) x(what, id, queue, channel, kind)
        where l.until > p_now
            and (select n.last_value from mail_number n) - l.read_to < 100000
            and (l.what is null or x.what = any(l.what))
            and (l.queues is null or x.queue = any(l.queues))
            and (l.channels is null or x.channel = any(l.channels))
            and (l.kinds is null or x.kind = any(l.kinds))
        group by l.id, x.what
        returning mail.listener_id
    )
    select array_agg(distinct 'mail ' || p.listener_id) into v_mailboxes from posted p;
    if v_mailboxes is not null and exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(v_mailboxes, p_now);
    end if;
end
$$;
