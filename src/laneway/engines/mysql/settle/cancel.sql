-- name: message_channels
-- $1: ids. The channels of the messages.
select id, channel_id, queue, channel from `laneway_message` where id in ($1...)

-- name: waiting_messages
-- $1: ids, $2: now. Those that are not leased. We have locked their channels.
select m.id, m.channel_id, m.queue, m.channel, m.kind, m.`key`, m.key_window, m.priority, m.attempt, m.due,
    m.published_at, m.first_published_at, octet_length(m.payload),
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s)
from `laneway_message` m
where m.id in ($1...) and not exists (select 1 from `laneway_lease` l where l.message_id = m.id)
order by m.id

-- name: message_states
-- $1: ids. Those that still exist, as messages or as dead letters.
select id, 'leased' from `laneway_message` where id in ($1...)
union all
select id, 'dead' from `laneway_dead` where id in ($1...)
