-- name: upkeep_needed
-- $1: now. Which upkeep tasks have anything to do.
select
    exists (select 1 from "laneway_claim" where until <= $1) as expire,
    exists (select 1 from "laneway_waiting" where expires_at <= $1) as lapse,
    exists (select 1 from "laneway_dedupe" where expires_at <= $1) as keys,
    exists (select 1 from "laneway_channel" where closing and waiting = 0 and leased = 0) as closing,
    exists (select 1 from "laneway_listener" where until <= $1) as mail,
    exists (select 1 from "laneway_pause" where until <= $1)
        or exists (select 1 from "laneway_channel" where paused_until <= $1)
        or (select a.at < $1 - s.audit_days * 86400000000
            from "laneway_audit" a, "laneway_state" s order by a.id limit 1) as control,
    exists (select 1 from "laneway_worker" where seen_at < $1 - 86400000000)
        or exists (select 1 from "laneway_cancel_request" r where not exists (
            select 1 from "laneway_lease" l where l.fence = r.fence and l.message_id = r.message_id)) as workers,
    (select ended_at < $1 - history_days * 86400000000 - $1 % 86400000000
            and id <= coalesce((select s.id from "laneway_lake_sure" s), id)
            and id <= (select f.history_id from "laneway_fold" f)
        from "laneway_history", "laneway_state" order by id limit 1) as history,
    exists (select 1 from "laneway_result" where expires_at <= $1)
        or exists (select 1 from "laneway_progress" p where p.at < $1 - 60000000 and not exists (
            select 1 from "laneway_lease" l where l.fence = p.fence and l.message_id = p.message_id)) as results,
    exists (select 1 from "laneway_flow_undecided") as undecided,
    exists (select 1 from "laneway_flow" where ended_at is null and held = 0 and live = 0 and dead = 0)
        or exists (select 1 from "laneway_flow" where expires_at <= $1) as flows,
    exists (
        select 1 from "laneway_limit_queue" q where not exists (
            select 1 from "laneway_limit_lane" l where l.limits = q.limits and l.queue = q.queue and l.waiting))
    or exists (select 1 from "laneway_limit_lane" where not waiting and used < $1 - 60000000)
    or exists (select 1 from "laneway_limit_clock" c where c.at < $1 - 60000000 and not exists (
        select 1 from "laneway_limit_lane" l where l.limits = c.limits))
    or exists (select 1 from "laneway_limit_wait" where released < $1 - 60000000)
    or exists (
        select 1 from "laneway_shared_limit" l cross join "laneway_limit_lease" k
        where (l.adapt_min is not null or l.breaker_window is not null) and k.name = l.name and not exists (
            select 1 from "laneway_lease" e where e.fence = k.fence and e.message_id = k.message_id)) as limits

-- name: expired_claims
-- $1: now, $2: limit. Claims that may have expired leases.
select fence from "laneway_claim" where until <= $1 order by until limit $2

-- name: expired_leases
-- $1: fences of claims, $2: now, $3: limit.
select l.message_id, l.fence from json_each($1) j cross join "laneway_lease" l
where l.fence = j.value and l.until <= $2 limit $3

-- name: note_expired_limits
-- $1: message ids, $2: now.
update "laneway_limit_lease" set outcome = 5, ended_at = $2
where name in (
        select name from "laneway_shared_limit" where adapt_min is not null or breaker_window is not null)
    and message_id in (select value from json_each($1))

-- name: update_claim_ends
-- $1: fences. Sets until to the earliest end of the leases that are left.
update "laneway_claim" set until = (
    select min(l.until) from "laneway_lease" l where l.fence = "laneway_claim".fence)
where fence in (select value from json_each($1))

-- name: lapsed_messages
-- $1: now, $2: limit. Waiting messages whose expires_at has passed.
select message_id from "laneway_waiting" where expires_at <= $1 order by expires_at limit $2

-- name: delete_expired_keys
-- $1: now, $2: limit.
delete from "laneway_dedupe" where (queue, key) in (
    select queue, key from "laneway_dedupe" where expires_at <= $1 limit $2)
returning 1

-- name: delete_removed_channels
-- $1: limit. Channels that were removed and are empty now.
delete from "laneway_channel" where id in (
    select id from "laneway_channel" where closing and waiting = 0 and leased = 0 limit $1)
returning 1

-- name: delete_expired_mail
-- $1: now, $2: limit. Of listeners that nobody reads any more.
delete from "laneway_mail" where number in (
    select m.number from "laneway_listener" l cross join "laneway_mail" m
    where l.until <= $1 and m.listener_id = l.id limit $2)
returning 1

-- name: delete_expired_listeners
-- $1: now, $2: limit. Those whose mail is deleted.
delete from "laneway_listener" where id in (
    select l.id from "laneway_listener" l
    where l.until <= $1 and not exists (select 1 from "laneway_mail" m where m.listener_id = l.id) limit $2)

-- name: delete_old_history
-- $1: now, $2: limit. Whole days (UTC), the oldest first; while there are lakes, only what all of them
-- have verified; and only what the figures per minute contain. The inner select has all columns that are
-- asked for: one of the outer row would have all of it read again for every row of the table.
delete from "laneway_history" where id in (
    select id from (select id, ended_at, message_id from "laneway_history" order by id limit $2)
    where ended_at < $1 - $1 % 86400000000
        - (select history_days from "laneway_state") * 86400000000
        and id <= coalesce((select s.id from "laneway_lake_sure" s), id)
        and id <= (select f.history_id from "laneway_fold" f)
        -- An id that was never given here is of a history that was written by hand.
        and (message_id <= (select f.message_id from "laneway_fold" f)
            or message_id > (select s.message_id from "laneway_state" s)))
returning 1

-- name: delete_old_audit
-- $1: now, $2: limit.
delete from "laneway_audit" where id in (
    select a.id from "laneway_audit" a, "laneway_state" s
    where a.at < $1 - s.audit_days * 86400000000 order by a.id limit $2)
returning 1

-- name: delete_ended_pauses
-- $1: now, $2: limit.
delete from "laneway_pause" where id in (select id from "laneway_pause" where until <= $1 limit $2)

-- name: resume_timed_channels
-- $1: now, $2: limit. Channels whose pause has ended: they have their turns already.
update "laneway_channel" set paused = 0, paused_until = null, throttled = 0
where id in (select id from "laneway_channel" where paused_until <= $1 order by paused_until limit $2)

-- name: delete_expired_results
-- $1: now, $2: limit.
delete from "laneway_result" where message_id in (
    select message_id from "laneway_result" where expires_at <= $1 order by expires_at limit $2)
returning 1

-- name: delete_old_progress
-- $1: now, $2: limit. What holders said whose leases are gone.
delete from "laneway_progress" where message_id in (
    select p.message_id from "laneway_progress" p
    where p.at < $1 - 60000000 and not exists (
        select 1 from "laneway_lease" l where l.fence = p.fence and l.message_id = p.message_id)
    limit $2)
returning 1
