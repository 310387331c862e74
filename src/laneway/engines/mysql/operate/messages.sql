-- name: messages_end
-- $1: id of the last one seen, $2: limit. The last of the next ones, and how many they are.
select max(id), count(*) from (
    select id from `laneway_message` force index (primary) where id > $1 order by id limit $2) m

-- name: messages
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: state, $7: now,
-- $8: id up to which. Finds them first: only those of the page are read with their payload, for its size.
select m.id, m.queue, m.channel, m.kind, m.`key`, x.state, m.priority, m.due, m.published_at, m.first_published_at,
    m.expires_at, case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts, m.content_type,
    m.headers, octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from (
    select * from (
        select m.id,
            case when l.fence is not null then 'leased'
                when m.due > coalesce($7, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
                then 'scheduled' else 'waiting' end as state
        from `laneway_message` m force index (primary) left join `laneway_lease` l on l.message_id = m.id
        where m.id > $4 and m.id <= $8 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
            and ($3 is null or m.kind = $3)
    ) m where $6 is null or state = $6
    order by id limit $5
) x straight_join `laneway_message` m force index (primary) on m.id = x.id
left join `laneway_lease` l on l.message_id = m.id
order by m.id

-- name: messages_leased_end
-- $1: id of the last one seen, $2: limit. As messages_end, of those that are leased.
select max(message_id), count(*) from (
    select message_id from `laneway_lease` force index (primary) where message_id > $1 order by message_id limit $2) l

-- name: messages_leased
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: id up to which.
select m.id, m.queue, m.channel, m.kind, m.`key`, 'leased', m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1, m.max_attempts, m.content_type, m.headers,
    octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from `laneway_lease` l force index (primary) straight_join `laneway_message` m on m.id = l.message_id
where l.message_id > $4 and l.message_id <= $6 and ($1 is null or m.queue = $1) and ($2 is null or m.channel = $2)
    and ($3 is null or m.kind = $3)
order by l.message_id limit $5

-- name: messages_dead_end
-- $1: id of the last one seen, $2: limit. As messages_end, of dead letters.
select max(id), count(*) from (
    select id from `laneway_dead` force index (primary) where id > $1 order by id limit $2) d

-- name: messages_dead
-- $1: queue, $2: channel, $3: kind, null matches all; $4: id of the last one seen, $5: limit, $6: id up to which.
select d.id, d.queue, d.channel, d.kind, d.`key`, 'dead', d.priority, null, d.published_at, d.first_published_at, null,
    d.attempt, d.max_attempts, d.content_type, d.headers, octet_length(d.payload), null, null, null, null,
    d.died_at, d.reason, d.error_type, d.error
from (
    select id from `laneway_dead` force index (primary)
    where id > $4 and id <= $6 and ($1 is null or queue = $1) and ($2 is null or channel = $2)
        and ($3 is null or kind = $3)
    order by id limit $5
) x straight_join `laneway_dead` d force index (primary) on d.id = x.id
order by d.id

-- name: size_of_channel
-- $1: channel, $2: limit. How many messages it has, up to the limit.
select count(*) from (
    select 1 from `laneway_message` force index (message_order) where channel_id = $1 limit $2) m

-- name: messages_of_channel
-- $1: channel, $2: kind, null for all; $3: id of the last one seen, $4: limit, $5: state, $6: now. As messages, for
-- a channel that has few.
select m.id, m.queue, m.channel, m.kind, m.`key`, x.state, m.priority, m.due, m.published_at, m.first_published_at,
    m.expires_at, case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts, m.content_type,
    m.headers, octet_length(m.payload), l.fence, l.worker, l.claimed_at, l.until, null, null, null, null
from (
    select * from (
        select m.id,
            case when l.fence is not null then 'leased'
                when m.due > coalesce($6, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
                then 'scheduled' else 'waiting' end as state
        from `laneway_message` m force index (message_order) left join `laneway_lease` l on l.message_id = m.id
        where m.channel_id = $1 and m.id > $3 and ($2 is null or m.kind = $2)
    ) m where $5 is null or state = $5
    order by id limit $4
) x straight_join `laneway_message` m force index (primary) on m.id = x.id
left join `laneway_lease` l on l.message_id = m.id
order by m.id
