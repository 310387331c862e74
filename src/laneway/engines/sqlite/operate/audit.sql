-- name: add_audit
-- $1: now, $2: actor, $3: source, $4: action, $5: target as JSON, $6: how many.
insert into "laneway_audit" (at, actor, source, action, target, affected)
values ($1, $2, $3, $4, $5, $6)

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, target, affected from "laneway_audit"
where id < coalesce($2, 9223372036854775807)
order by id desc limit $1
