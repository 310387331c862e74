-- name: claim
-- $1: queues, $2: limit, $3: lease, $4: worker, $5: quantum, $6: what the last claim answered
-- in its place, $7: kinds, or null, $8: now.
-- What only the last row has is packed into one column, because every column costs time in every row.
-- Times are seconds. The floors are text: they may be infinite, which drivers cannot read, and must come
-- back unchanged whatever the session's DateStyle and TimeZone are.
select
    c.id, c.fence, c.queue, c.channel, c.kind, c.priority, c.attempt, c.max_attempts,
    c.due, c.published_at, c.first_published_at, c.expires_at, c.key, c.content_type,
    CAST(c.headers AS text) as headers, c.state_type, c.state, c.payload, c.spent,
    case when c.id is null then CAST(json_build_array(
        c.answer, extract(epoch from c.claimed_at), extract(epoch from c.until),
        case when isfinite(c.look_again) then greatest(0, extract(epoch from
            c.look_again - coalesce(CAST($8 AS timestamptz), clock_timestamp()))) end,
        CAST(json_build_array(
            c.turn_floor, c.wake_floor, coalesce(c.open_xids, '{}'), coalesce(c.open_turns, '{}'),
            coalesce(c.open_wakes, '{}'), c.contended, c.life) AS text), c.key, c.life) AS text) end as answer
from "laneway".claim_v1(
    CAST($1 AS text[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS text), CAST($5 AS integer),
    CAST(CAST($6 AS json) ->> 0 AS timestamptz),
    CAST(CAST($6 AS json) ->> 1 AS timestamptz),
    array(select CAST(x AS bigint) from json_array_elements_text(CAST($6 AS json) -> 2) x),
    array(select CAST(x AS timestamptz) from json_array_elements_text(CAST($6 AS json) -> 3) x),
    array(select CAST(x AS timestamptz) from json_array_elements_text(CAST($6 AS json) -> 4) x),
    p_contended => coalesce(CAST(CAST($6 AS json) ->> 5 AS boolean), false),
    p_kinds => CAST($7 AS text[]), p_now => CAST($8 AS timestamptz),
    p_life => CAST(CAST($6 AS json) ->> 6 AS bigint)) c

-- name: by_kind
-- $1: queues, $2: now.
select "laneway".by_kind_v1(CAST($1 AS text[]), CAST($2 AS timestamptz))

-- name: admit
-- $1: message ids, $2: fences, $3: the limits of each, $4: now. Answers those that may start.
select "laneway".admit_v1(CAST($1 AS bigint[]), CAST($2 AS bigint[]), CAST($3 AS text[]), CAST($4 AS timestamptz))

-- name: start_limited
-- $1: queues, $2: kinds, or null, $3: limit, $4: lease, $5: worker, $6: now. Rows as those of claim.
select
    c.id, c.fence, c.queue, c.channel, c.kind, c.priority, c.attempt, c.max_attempts,
    c.due, c.published_at, c.first_published_at, c.expires_at, c.key, c.content_type,
    CAST(c.headers AS text) as headers, c.state_type, c.state, c.payload, c.spent,
    case when c.id is null then CAST(json_build_array(
        CAST(c.answer AS integer), c.contended, extract(epoch from c.claimed_at), extract(epoch from c.until),
        greatest(0, extract(epoch from c.look_again - coalesce(CAST($6 AS timestamptz), clock_timestamp())))) AS text) end
from "laneway".start_limited_v1(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS integer), CAST($4 AS interval), CAST($5 AS text), CAST($6 AS timestamptz)) c

-- name: sweep_limited
-- $1: ids of messages that have to wait, $2: the limits of each, $3: now.
select "laneway".sweep_limited_v1(CAST($1 AS bigint[]), CAST($2 AS text[]), CAST($3 AS timestamptz))

-- name: notify_channel
select "laneway".notify_channel_v1()

-- name: sleep
-- $1: queues, $2: worker, $3: for how long, null to wake up, $4: kinds, or null for all, $5: now.
select CAST("laneway".sleep_v1(
    CAST($1 AS text[]), CAST($2 AS text), CAST($3 AS interval), CAST($5 AS timestamptz),
    CAST($4 AS text[])) AS text)
