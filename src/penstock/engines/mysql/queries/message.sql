-- $1: id, $2: now. One statement, so that a message which dies meanwhile is seen once.
select m.id, m.queue, m.channel, m.kind, m.`key`,
    case when l.fence is not null then 'leased'
        when m.due > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        then 'scheduled' else 'waiting' end as state,
    m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    case when l.fence is null then m.attempt else m.attempt + 1 end as attempt, m.max_attempts,
    m.content_type, m.headers, octet_length(m.payload) as payload_size, l.fence, l.worker,
    l.claimed_at, l.until, null as died_at, null as reason, null as error_type, null as error
from `penstock_message` m left join `penstock_lease` l on l.message_id = m.id where m.id = $1
union all
select id, queue, channel, kind, `key`, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, octet_length(payload), null, null, null, null,
    died_at, reason, error_type, error
from `penstock_dead` where id = $1
