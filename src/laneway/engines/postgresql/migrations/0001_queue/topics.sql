-- Topics: which queues get a copy of what is published to a topic. A static table, read by publishers
-- only; channel and kind replace those of the message, null leaves them.
create table "laneway".subscription (
    topic text collate "C" not null,
    queue text collate "C" not null,
    channel text collate "C",
    kind text collate "C",
    primary key (topic, queue),
    check (octet_length(topic) between 1 and 255 and octet_length(queue) between 1 and 255
        and octet_length(channel) between 1 and 255 and octet_length(kind) <= 255)
);

-- publish to a topic: one copy into each queue that is subscribed when the statement runs. The copies
-- are published together, and like any others: they wait for nobody but for an open publish of the
-- same key in the same queue.
--
-- The arrays are those of publish_v1, without the queues. Answers one row a copy, by message (ordinal)
-- and queue; no rows if nobody is subscribed.
create or replace function "laneway".publish_topic_v1(
    p_topic text,
    p_payload bytea[],
    p_channel text[],
    p_kind text[] default '{}',
    p_content_type text[] default '{}',
    p_headers text[] default '{}',
    p_key text[] default '{}',
    p_key_window interval[] default '{}',
    p_priority smallint[] default '{}',
    p_delay interval[] default '{}',
    p_at timestamptz[] default '{}',
    p_expires_in interval[] default '{}',
    p_expires_at timestamptz[] default '{}',
    p_max_attempts integer[] default '{}',
    p_key_scope text[] default '{}',
    p_now timestamptz default null
) returns table (ordinal integer, queue text, id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    v_copy record;
begin
    perform check_names_v1('topic', array[p_topic]), check_messages_v1(
        p_payload, null, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window, p_priority, p_delay, p_at, p_expires_in,
        p_expires_at, p_max_attempts);
    select
        array_agg(c.ordinal) as ordinal, array_agg(c.queue) as queue, array_agg(c.channel) as channel,
        array_agg(c.kind) as kind, array_agg(c.payload) as payload, array_agg(c.content_type) as content_type,
        array_agg(c.headers) as headers, array_agg(c.key) as key, array_agg(c.key_window) as key_window,
        array_agg(c.key_scope) as key_scope,
        array_agg(c.priority) as priority, array_agg(c.delay) as delay, array_agg(c.at) as at,
        array_agg(c.expires_in) as expires_in, array_agg(c.expires_at) as expires_at,
        array_agg(c.max_attempts) as max_attempts
    into v_copy
    from (
        select x.ordinal::integer as ordinal, s.queue,
            coalesce(s.channel, x.channel, p_channel[1]) as channel,
            coalesce(s.kind, x.kind, p_kind[1], '') as kind,
            coalesce(x.content_type, p_content_type[1]) as content_type,
            coalesce(x.priority, p_priority[1]) as priority,
            coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end) as delay,
            coalesce(x.expires_in, case when cardinality(p_expires_in) = 1 then p_expires_in[1] end) as expires_in,
            coalesce(x.max_attempts, p_max_attempts[1]) as max_attempts,
            coalesce(x.key_scope, case when cardinality(p_key_scope) = 1 then p_key_scope[1] end) as key_scope,
            x.payload, x.headers, x.key, x.key_window, x.at, x.expires_at
        from unnest(
            p_payload, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window,
            p_priority, p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts, p_key_scope
        ) with ordinality x(
            payload, channel, kind, content_type, headers, key, key_window,
            priority, delay, at, expires_in, expires_at, max_attempts, key_scope, ordinal)
        cross join subscription s
        where s.topic = p_topic
        order by x.ordinal, s.queue
    ) c;
    if v_copy.ordinal is null then
        return;
    end if;
    return query
    select o.ordinal, o.queue, o.id, o.status
    from rows from (
        unnest(v_copy.ordinal::integer[]),
        unnest(v_copy.queue::text[]),
        publish_v1(
            v_copy.payload, v_copy.queue, v_copy.channel, v_copy.kind, v_copy.content_type, v_copy.headers,
            v_copy.key, v_copy.key_window, v_copy.priority, v_copy.delay, v_copy.at, v_copy.expires_in,
            v_copy.expires_at, v_copy.max_attempts, v_copy.key_scope, p_now)
    ) o(ordinal, queue, id, status);
end
$$;

create view "laneway".subscription_v1 as
select s.topic, s.queue, s.channel, s.kind from "laneway".subscription s;
