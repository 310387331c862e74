-- name: endings
-- $1: ids. One row each: the outcome, null if the message has not ended. One snapshot, so a message that moves
-- from table to table is seen once. A result that is kept knows more than a history that keeps only failures, or
-- nothing; so does a node of a flow.
select x.id,
    case when m.id is not null then null when d.id is not null then 'dead'
        when n.state = 'held' or n.id is null and f.id is not null then null
        else coalesce(r.outcome, h.outcome, n.state, 'unknown') end,
    coalesce(d.died_at, r.ended_at, h.ended_at, nullif(n.ended_at, 0)), coalesce(d.reason, r.reason, h.reason),
    coalesce(d.error_type, r.error_type, h.error_type), coalesce(d.error, r.error, h.error), r.expires_at
from $1:ids x
left join `laneway_message` m on m.id = x.id
left join `laneway_dead` d on d.id = x.id and m.id is null
left join `laneway_result` r on r.message_id = x.id and m.id is null and d.id is null
left join `laneway_history` h on m.id is null and d.id is null and r.message_id is null and h.id = (
    select max(k.id) from `laneway_history` k where k.message_id = x.id and k.terminal)
left join `laneway_flow_node` n on m.id is null and d.id is null and r.message_id is null and h.id is null and n.id = x.id
left join `laneway_flow_held` f on m.id is null and d.id is null and r.message_id is null and h.id is null and f.id = x.id

-- name: listen
-- $1: now, $2: for how long, $3..$6: the fields of EventFilter as JSON, null for all.
insert into `laneway_listener` (until, read_to, what, queues, channels, kinds)
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) + $2,
    coalesce((select max(number) from `laneway_mail`), 0), $3, $4, $5, $6

-- name: last_insert_id
-- The id that this session's last insert generated.
select last_insert_id()

-- name: listener_status
-- $1: now, $2: listener. No row if it is gone. Columns: whether it still gets mail, how far it is behind,
-- the time.
select l.until > c.now, coalesce((select max(number) from `laneway_mail`), 0) - l.read_to, c.now
from (select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) c join `laneway_listener` l on l.id = $2

-- name: hear
-- $1: listener, $2: limit.
select number, at, what, events from `laneway_mail` force index (mail_order)
where listener_id = $1 order by number limit $2

-- name: delete_mail
-- $1: numbers.
delete t from $1:ids x straight_join `laneway_mail` t force index (primary) on t.number = x.id

-- name: extend_listener
-- $1: until, $2: listener.
update `laneway_listener` set until = $1,
    read_to = coalesce((select max(number) from `laneway_mail`), 0)
where id = $2

-- name: unlisten
-- $1: now, $2: listener.
update `laneway_listener` set until = coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
where id = $2

-- name: event_listeners
-- $1: now, $2: what happened. The listeners to it, and the time.
select l.id, c.now, l.queues, l.channels, l.kinds
from (select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) c
join `laneway_listener` l force index (listener_until) on l.until > c.now
where (l.what is null or json_contains(l.what, json_quote(convert($2 using utf8mb4))))
    and coalesce((select max(number) from `laneway_mail`), 0) - l.read_to < 100000

-- name: event_messages
-- $1: ids. A locking read, so that a caller's old snapshot hides none of them. We have locked them already,
-- except for messages that a claim has just leased, which nobody else writes to.
select m.id, m.queue, m.channel, m.kind
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
lock in share mode

-- name: add_events
-- $1: rows.
insert into `laneway_mail` (listener_id, at, what, events) values $1...
