-- Part of every verb that moves messages: tell those who listen what happened to them. The messages
-- still are, as waiting, leased or dead ones. p_what runs parallel to p_ids, or is one for all.
--
-- Callers ask first whether anybody listens: with nobody there it is a look at an empty index.
create or replace function "penstock".tell_v1(p_what text[], p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    perform post_v1(array_agg(coalesce(x.what, p_what[1])), array_agg(x.id),
        array_agg(coalesce(m.queue, d.queue)), array_agg(coalesce(m.channel, d.channel)),
        array_agg(coalesce(m.kind, d.kind)), p_now)
    from unnest(p_what, p_ids) x(what, id)
    left join lateral (select k.queue, k.channel, k.kind from message k where k.id = x.id offset 0) m on true
    left join lateral (
        select k.queue, k.channel, k.kind from dead k where m.queue is null and k.id = x.id offset 0) d on true
    where coalesce(m.queue, d.queue) is not null;
end
$$;
