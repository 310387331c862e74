-- $1: queues, $2: limit, $3: lease, $4: worker, $5: quantum, $6: floors and crowd of the last
-- claim, $7: now.
-- What only the last row has is one column: each is paid for in every row. Times are seconds; the
-- floors are text: they may be infinite, which no driver reads, and must come back unchanged whatever
-- the session's DateStyle and TimeZone are.
select
    c.id, c.fence, c.queue, c.channel, c.kind, c.priority, c.attempt, c.max_attempts,
    c.due, c.published_at, c.first_published_at, c.expires_at, c.key, c.content_type,
    CAST(c.headers AS text) as headers, c.state_type, c.state, c.payload, c.spent,
    case when c.id is null then CAST(json_build_array(
        c.answer, extract(epoch from c.claimed_at), extract(epoch from c.until),
        case when isfinite(c.look_again) then greatest(0, extract(epoch from
            c.look_again - coalesce(CAST($7 AS timestamptz), clock_timestamp()))) end,
        CAST(json_build_array(
            c.turn_floor, c.wake_floor, coalesce(c.strays, '{}'), coalesce(c.stray_turns, '{}'),
            coalesce(c.stray_wakes, '{}'), c.crowd) AS text)) AS text) end as answer
from "penstock".claim_v1(
    CAST($1 AS text[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS text), CAST($5 AS integer),
    CAST(CAST($6 AS json) ->> 0 AS timestamptz),
    CAST(CAST($6 AS json) ->> 1 AS timestamptz),
    array(select CAST(x AS bigint) from json_array_elements_text(CAST($6 AS json) -> 2) x),
    array(select CAST(x AS timestamptz) from json_array_elements_text(CAST($6 AS json) -> 3) x),
    array(select CAST(x AS timestamptz) from json_array_elements_text(CAST($6 AS json) -> 4) x),
    p_crowd => coalesce(CAST(CAST($6 AS json) ->> 5 AS boolean), false),
    p_now => CAST($7 AS timestamptz)) c
