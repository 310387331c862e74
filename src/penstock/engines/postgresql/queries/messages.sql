-- $1: queue, $2: channel, $3: kind; null matches all. $4: id of the last one seen, $5: limit,
-- $6: state, $7: now. By id, so that a page costs what it shows, and by the channel's index if both
-- names are given.
select * from (
    select id, queue, channel, kind, key,
        case when fence is not null then 'leased'
            when due > coalesce(CAST($7 AS timestamptz), clock_timestamp()) then 'scheduled'
            else 'waiting' end as state,
        priority, case when isfinite(due) then due end as due, published_at, first_published_at,
        case when isfinite(expires_at) then expires_at end as expires_at,
        case when fence is null then attempt else attempt + 1 end as attempt, max_attempts,
        content_type, CAST(headers AS text) as headers, payload_size, fence, worker, claimed_at, until
    from "penstock".message_v1
    where id > CAST($4 AS bigint)
        and (CAST($1 AS text) is null or queue = CAST($1 AS text))
        and (CAST($2 AS text) is null or channel = CAST($2 AS text))
        and (CAST($1 AS text) is null or CAST($2 AS text) is null
            or channel_id = "penstock".channel_id_v1(CAST($1 AS text), CAST($2 AS text)))
        and (CAST($3 AS text) is null or kind = CAST($3 AS text))
) m
where CAST($6 AS text) is null or state = CAST($6 AS text)
order by id
limit CAST($5 AS integer)
