-- $1: id, $2: now. One statement, so that a message which dies meanwhile is seen once.
select id, queue, channel, kind, key,
    case when fence is not null then 'leased'
        when due > coalesce(CAST($2 AS timestamptz), clock_timestamp()) then 'scheduled'
        else 'waiting' end as state,
    priority, case when isfinite(due) then due end as due, published_at, first_published_at,
    case when isfinite(expires_at) then expires_at end as expires_at,
    case when fence is null then attempt else attempt + 1 end as attempt, max_attempts, content_type,
    CAST(headers AS text) as headers, payload_size, fence, worker, claimed_at, until,
    CAST(null AS timestamptz) as died_at, CAST(null AS text) as reason,
    CAST(null AS text) as error_type, CAST(null AS text) as error
from "penstock".message_v1 where id = CAST($1 AS bigint)
union all
select id, queue, channel, kind, key, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, CAST(headers AS text), payload_size, null, null, null, null,
    died_at, reason, error_type, error
from "penstock".dead_letter_v1 where id = CAST($1 AS bigint)
