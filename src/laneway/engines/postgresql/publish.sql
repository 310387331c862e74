-- name: publish
-- $1..$15: the columns of Draft as arrays, null where none has a value; $16: now.
-- Answers two arrays, ids and statuses; the second is null if all were published, the usual case.
select array_agg(p.id), case when not bool_and(p.status = 'published') then array_agg(p.status) end
from "laneway".publish_v1(
    CAST($1 AS bytea[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    CAST($6 AS text[]), CAST($7 AS text[]),
    CAST($8 AS interval[]), CAST($9 AS smallint[]),
    CAST($10 AS interval[]), CAST($11 AS timestamptz[]),
    CAST($12 AS interval[]), CAST($13 AS timestamptz[]),
    CAST($14 AS integer[]), CAST($15 AS text[]), CAST($16 AS timestamptz)) p

-- name: may_copy
-- Whether this role writes the tables itself: one of install --roles may only call publish_v1.
select has_table_privilege('"laneway".message', 'insert') and has_table_privilege('"laneway".message', 'select')
    and has_table_privilege('"laneway".wake', 'insert')
    and has_table_privilege('"laneway".channel', 'select') and has_table_privilege('"laneway".kind_queue', 'select')

-- name: copy_time
-- $1: now. A statement of its own: the transaction has its number before the next one sees anything (by_kind_v1).
select "laneway".write_time_v1(CAST($1 AS timestamptz))

-- name: copy_state
-- $1: how many ids (a series in a list of columns is not kept in a store of rows first). Also the queues that are
-- claimed by kind, and whether any channel may refuse messages.
select array(select nextval('"laneway".message_id') from (select generate_series(1, CAST($1 AS integer))) s),
    array(select k.queue from "laneway".kind_queue k),
    exists (select from "laneway".channel c where c.backlog is not null or c.closing)

-- name: copy_messages
copy "laneway".message (
    id, channel_id, queue, channel, kind, content_type, priority, max_attempts, by_kind, headers, published_at,
    first_published_at, due, expires_at, payload)
from stdin (format binary)

-- name: copy_plain
-- What is left out has a default, times those of this statement, whose transaction has its number already.
copy "laneway".message (id, channel_id, queue, channel, kind, content_type, priority, max_attempts, payload)
from stdin (format binary)

-- name: copied_at
-- $1: the id of a message that copy_plain brought.
select m.due from "laneway".message m where m.id = CAST($1 AS bigint)

-- name: copy_wakes
copy "laneway".wake (message_id, n, channel_id, queue, channel, priority, lane, at, due) from stdin (format binary)

-- name: copy_heard
-- $1: now. Whether anybody listens for events or sleeps.
select exists (select from "laneway".listener l where l.until > CAST($1 AS timestamptz))
    or exists (select from "laneway".sleeper s where s.until > CAST($1 AS timestamptz))

-- name: copy_announce
-- $1: ids, $2: queues with messages that are due soon, $3: kinds, $4: now.
select "laneway".announce_nodes_v1(
    CAST($1 AS bigint[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS timestamptz))

-- name: subscribe
-- $1: topic, $2: queue, $3: channel, $4: kind.
insert into "laneway".subscription (topic, queue, channel, kind)
values (CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text))
on conflict (topic, queue) do update set channel = excluded.channel, kind = excluded.kind
returning topic

-- name: unsubscribe
-- $1: topic, $2: queue.
delete from "laneway".subscription where topic = CAST($1 AS text) and queue = CAST($2 AS text)
returning topic

-- name: subscriptions
-- $1: topic, null for all.
select topic, queue, channel, kind
from "laneway".subscription_v1
where CAST($1 AS text) is null or topic = CAST($1 AS text)
order by topic, queue

-- name: subscribers
-- $1: topic.
select queue, channel, kind from "laneway".subscribers_v1(CAST($1 AS text))

-- name: publish_topic
-- $1: topic; $2..$15: the columns of Draft without the queue as arrays, null where none has a value;
-- $16: now.
select ordinal, queue, id, status
from "laneway".publish_topic_v1(
    CAST($1 AS text), CAST($2 AS bytea[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    coalesce(CAST($6 AS text[]), '{}'), coalesce(CAST($7 AS text[]), '{}'),
    coalesce(CAST($8 AS interval[]), '{}'), CAST($9 AS smallint[]),
    coalesce(CAST($10 AS interval[]), '{}'), coalesce(CAST($11 AS timestamptz[]), '{}'),
    coalesce(CAST($12 AS interval[]), '{}'), coalesce(CAST($13 AS timestamptz[]), '{}'),
    CAST($14 AS integer[]), coalesce(CAST($15 AS text[]), '{}'), CAST($16 AS timestamptz))

-- name: replace
-- $1..$15: the columns of Draft as arrays, one element for each; $16: how long each may be debounced; $17: now.
select id, status
from "laneway".replace_v1(
    CAST($1 AS bytea[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    CAST($6 AS text[]), CAST($7 AS text[]), CAST($8 AS interval[]), CAST($9 AS smallint[]),
    CAST($10 AS interval[]), CAST($11 AS timestamptz[]), CAST($12 AS interval[]), CAST($13 AS timestamptz[]),
    CAST($14 AS integer[]), CAST($15 AS text[]), CAST($16 AS interval[]), CAST($17 AS timestamptz))
