-- name: partition
-- Part of the script: the first partitions of the history.
select "laneway".partition_v1()

-- name: migration_lock
-- One process at a time migrates a schema. $1: schema.
-- Nothing here gives up: whoever migrates may take long.
select set_config('lock_timeout', '0', true),
    CAST(pg_advisory_xact_lock(hashtextextended('laneway.migrate.' || CAST($1 AS text), 0)) AS text)

-- name: uninstall
-- Everything that install created, with its data.
drop schema "laneway" cascade

-- name: migration_exists
-- $1: schema.
select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = CAST($1 AS text) and c.relname = 'migration')

-- name: migration_number
select coalesce(max(number), 0) from "laneway".migration

-- name: roles_prefix
-- $1: schema. The prefix of the installed roles: the producer's name without its suffix.
select left(r.rolname, -length('_producer'))
from pg_namespace n
cross join lateral aclexplode(n.nspacl) a
join pg_roles r on r.oid = a.grantee
where n.nspname = CAST($1 AS text) and a.privilege_type = 'USAGE' and r.rolname like '%\_producer'

-- name: migration_note
-- Part of the script; $1 and $2 are replaced by literals.
insert into "laneway".migration (number, name) values ($1, $2)
