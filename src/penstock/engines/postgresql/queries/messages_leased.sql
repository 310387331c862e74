-- $1: queue, $2: channel, $3: kind; null matches all. $4: id of the last one seen, $5: limit.
-- Starts from the leases, which are few.
select id, queue, channel, kind, key, 'leased' as state, priority,
    case when isfinite(due) then due end as due, published_at, first_published_at,
    case when isfinite(expires_at) then expires_at end as expires_at, attempt + 1 as attempt,
    max_attempts, content_type, CAST(headers AS text) as headers, payload_size, fence, worker,
    claimed_at, until
from "penstock".message_v1
where fence is not null and id > CAST($4 AS bigint)
    and (CAST($1 AS text) is null or queue = CAST($1 AS text))
    and (CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
order by id
limit CAST($5 AS integer)
