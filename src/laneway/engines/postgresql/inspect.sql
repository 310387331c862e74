-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at,
    case when isfinite(due) then due end, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway".history_v1
where message_id = CAST($1 AS bigint)
order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from "laneway".setting

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null leaves it as it is.
update "laneway".setting set
    history = coalesce(CAST($1 AS text), history),
    history_changes = history_changes + CAST(coalesce(CAST($1 AS text), history) <> history AS integer),
    history_days = coalesce(CAST($2 AS integer), history_days),
    backoff_initial = coalesce(CAST($3 AS interval), backoff_initial),
    backoff_max = coalesce(CAST($4 AS interval), backoff_max),
    audit_days = coalesce(CAST($5 AS integer), audit_days)
returning history, history_days, backoff_initial, backoff_max, audit_days

-- name: messages
-- $1: queue, $2: channel, $3: kind, $4: state; null matches all but the dead. $5: id of the last one
-- seen, $6: limit, $7: the most rows to look at, $8: now.
select id, queue, channel, kind, key, state, priority, case when isfinite(due) then due end as due,
    published_at, first_published_at, case when isfinite(expires_at) then expires_at end as expires_at,
    attempt, max_attempts, content_type, CAST(headers AS text) as headers, payload_size, fence, worker,
    claimed_at, until, died_at, reason, error_type, error, next, looked
from "laneway".messages_v1(
    CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS bigint),
    CAST($6 AS integer), CAST($8 AS timestamptz), CAST($7 AS integer))

-- name: message
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
    CAST(null AS text) as error_type, CAST(null AS text) as error, CAST(null AS text) as traceback
from "laneway".message_v1 where id = CAST($1 AS bigint)
union all
select id, queue, channel, kind, key, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, CAST(headers AS text), payload_size, null, null, null, null,
    died_at, reason, error_type, error, traceback
from "laneway".dead_letter_v1 where id = CAST($1 AS bigint)

-- name: payload
-- $1: id.
select payload from "laneway".message_v1 where id = CAST($1 AS bigint)
union all
select payload from "laneway".dead_letter_v1 where id = CAST($1 AS bigint)

-- name: saved_state
-- $1: id.
select saved_state from "laneway".message_v1 where id = CAST($1 AS bigint)
union all
select saved_state from "laneway".dead_letter_v1 where id = CAST($1 AS bigint)

-- name: history_end
-- Every transaction below this number has ended.
select CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)

-- name: history_since
-- $1 and $2: xid and id of the last one seen, $3: limit. Only rows that no open
-- transaction can still come before. The first column is for the next position.
select xid, id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at,
    case when isfinite(due) then due end, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway".history_v1
where xid >= CAST($1 AS bigint)
    and xid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
    and (xid, id) > (CAST($1 AS bigint), CAST($2 AS bigint))
order by xid, id
limit CAST($3 AS integer)

-- name: totals
-- The sequences themselves: no table is read. They began from the number of this life of the server.
select m.last_value - CAST(not m.is_called AS integer) - l.number as published,
    h.last_value - CAST(not h.is_called AS integer) - l.number as ended
from "laneway".message_id m, "laneway".history_id h,
    (select l.last_value - CAST(not l.is_called AS integer) as number from "laneway".server_life l) l

-- name: clock
-- $1: now.
select coalesce(CAST($1 AS timestamptz), clock_timestamp())
