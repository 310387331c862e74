-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway_history" where message_id = $1 order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from "laneway_state"

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null: unchanged.
update "laneway_state" set
    history = coalesce($1, history), history_days = coalesce($2, history_days),
    backoff_initial = coalesce($3, backoff_initial), backoff_max = coalesce($4, backoff_max),
    audit_days = coalesce($5, audit_days)
returning history, history_days, backoff_initial, backoff_max, audit_days

-- name: open_gap
-- $1: now. From now on not all of the history is kept. What began before and was not counted yet may be
-- missed too: messages that were published, attempts that are under way.
insert into "laneway_history_gap" (begins)
select min($1,
    coalesce((select m.first_published_at from "laneway_message" m
        where m.id > (select f.message_id from "laneway_fold" f) order by m.id limit 1), $1),
    coalesce((select k.claimed_at from "laneway_claim" k order by k.fence limit 1), $1))
where not exists (select 1 from "laneway_history_gap" where ends is null)

-- name: close_gap
-- $1: now.
update "laneway_history_gap" set ends = $1 where ends is null

-- name: forget_kind_counts
-- The history does not keep everything any more: the counts by kind miss what ends from now on.
update "laneway_fold" set history_changes = history_changes + 1
