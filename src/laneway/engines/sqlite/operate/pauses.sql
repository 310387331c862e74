-- name: delete_pause
-- $1: queue, $2: kind, or null for the whole queue.
delete from "laneway_pause" where queue = $1 and kind is $2 returning until

-- name: add_pause
-- $1: queue, $2: kind, or null for the whole queue, $3: until, $4: now, $5: actor, $6: reason.
insert into "laneway_pause" (queue, kind, until, since, actor, reason) values ($1, $2, $3, $4, $5, $6)

-- name: pauses
-- $1: queue, or null for all, $2: now.
select queue, kind, until, since, actor, reason from "laneway_pause"
where ($1 is null or queue = $1) and (until is null or until > $2)
order by queue, kind nulls first
