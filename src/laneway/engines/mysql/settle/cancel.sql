-- name: message_channels
-- $1: ids. The channels of the messages.
select id, channel_id, queue, channel from `laneway_message` where id in ($1...)

-- name: waiting_messages
-- $1: ids, $2: now. Those that are not leased. We have locked their channels. The last column: how many queues are
-- claimed by kind.
select m.id, m.channel_id, m.queue, m.channel, m.kind, m.`key`, m.key_window, m.priority, m.attempt, m.due,
    m.published_at, m.first_published_at, octet_length(m.payload),
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s),
    (select t.by_kind from `laneway_turnstile` t force index (primary) where t.name = 'pause')
from `laneway_message` m
where m.id in ($1...) and not exists (select 1 from `laneway_lease` l where l.message_id = m.id)
order by m.id

-- name: message_states
-- $1: ids. Those that still exist, as messages or as dead letters.
select id, 'leased' from `laneway_message` where id in ($1...)
union all
select id, 'dead' from `laneway_dead` where id in ($1...)

-- name: delete_kind_messages
-- $1: ids of messages in channels that we have locked, which begin, end or change; their rows are unchanged yet.
delete k from $1:ids x
straight_join `laneway_message` m force index (primary) on m.id = x.id
straight_join `laneway_kind_message` k force index (primary) on k.channel_id = m.channel_id
    and k.lane = concat('=', m.kind) and k.priority = m.priority and k.due = m.due and k.message_id = m.id
