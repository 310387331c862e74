-- $1: ids, $2: now. Those that wait; their channels are owned.
select m.id, m.channel_id, m.queue, m.channel, m.kind, m.`key`, m.key_window, m.priority, m.attempt, m.due,
    m.published_at, m.first_published_at, octet_length(m.payload),
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `penstock_setting` s)
from `penstock_message` m
where m.id in ($1...) and not exists (select 1 from `penstock_lease` l where l.message_id = m.id)
order by m.id
