-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit,
-- $6: state, $7: now. By id, so that a page costs what it shows.
select * from (
    select m.id, m.queue, m.channel, m.kind, m.`key`,
        case when l.fence is not null then 'leased'
            when m.due > coalesce($7, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
            then 'scheduled' else 'waiting' end as state,
        m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
        case when l.fence is null then m.attempt else m.attempt + 1 end as attempt, m.max_attempts,
        m.content_type, m.headers, octet_length(m.payload) as payload_size, l.fence, l.worker,
        l.claimed_at, l.until, null as died_at, null as reason, null as error_type, null as error
    from `penstock_message` m left join `penstock_lease` l on l.message_id = m.id
    where m.id > $4 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
        and ($3 is null or m.kind = $3)
) m
where $6 is null or state = $6
order by id limit $5
