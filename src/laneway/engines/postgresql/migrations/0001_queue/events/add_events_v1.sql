-- Part of every verb that changes the state of messages: write events for the listeners. The messages
-- must still exist, waiting, leased or dead. p_what has one element per message, or one for all.
--
-- Callers first check whether there are listeners: without any that is a read of an empty index.
create or replace function "laneway".add_events_v1(p_what text[], p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    perform deliver_events_v1(array_agg(coalesce(x.what, p_what[1])), array_agg(x.id),
        array_agg(coalesce(m.queue, d.queue)), array_agg(coalesce(m.channel, d.channel)),
        array_agg(coalesce(m.kind, d.kind)), p_now)
    from unnest(p_what, p_ids) x(what, id)
    left join lateral (select k.queue, k.channel, k.kind from message k where k.id = x.id offset 0) m on true
    left join lateral (
        select k.queue, k.channel, k.kind from dead k where m.queue is null and k.id = x.id offset 0) d on true
    where coalesce(m.queue, d.queue) is not null;
end
$$;
