-- name: count_pause
-- Waits for the claims that have looked for pauses and are starting something.
update `laneway_turnstile` force index (primary) set n = n + 1 where name = 'pause'

-- name: lock_pause
-- $1: queue, $2: kind, or null for the whole queue. (Few rows, so it needs no index.)
select id, until from `laneway_pause` where queue = $1 and kind <=> $2 for update

-- name: add_pause
-- $1: queue, $2: kind, or null for the whole queue, $3: until, $4: now, $5: actor, $6: reason.
insert into `laneway_pause` (queue, kind, until, since, actor, reason) values ($1, $2, $3, $4, $5, $6)

-- name: pauses
-- $1: queue, or null for all, $2: now.
select queue, kind, until, since, actor, reason from `laneway_pause`
where ($1 is null or queue = $1)
    and coalesce(until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true)
order by queue, kind, id
