-- name: add_audit
-- $1: actor, $2: source, $3: action, $4: target as JSON, $5: how many, $6: now.
insert into `laneway_audit` (at, actor, source, action, target, affected)
values (coalesce($6, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), $1, $2, $3, $4, $5)

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, target, affected from `laneway_audit`
where id < coalesce($2, 9223372036854775807)
order by id desc limit $1
