-- Part of publishing to a topic with a key mode: who gets a copy. Producers may not read the table, and their clients
-- make such copies themselves.
create or replace function "laneway".subscribers_v1(p_topic text)
returns table (queue text, channel text, kind text)
language sql
stable
set search_path = "laneway", pg_temp
as $$
    select s.queue, s.channel, s.kind from subscription s where s.topic = p_topic order by s.queue
$$;
