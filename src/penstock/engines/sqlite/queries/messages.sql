-- $1: queue, $2: channel, $3: kind; null matches all. $4: id of the last one seen, $5: limit,
-- $6: state, $7: now. By id, so that a page costs what it shows.
select * from (
    select m.id, c.queue, c.name as channel, m.kind, m.key,
        case when l.fence is not null then 'leased' when m.due > $7 then 'scheduled' else 'waiting' end
            as state,
        m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
        m.attempt + (l.fence is not null) as attempt, m.max_attempts, m.content_type, m.headers,
        length(m.payload) as payload_size, l.fence, k.worker, k.claimed_at, l.until
    from "penstock_message" m
    join "penstock_channel" c on c.id = m.channel_id
    left join "penstock_lease" l on l.message_id = m.id
    left join "penstock_claim" k on k.fence = l.fence
    where m.id > $4 and ($1 is null or c.queue = $1) and ($2 is null or c.name = $2)
        and ($3 is null or m.kind = $3)
)
where $6 is null or state = $6
order by id limit $5
