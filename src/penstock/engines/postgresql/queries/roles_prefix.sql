-- $1: schema. Under which prefix roles were installed: the producer's name without its end.
select left(r.rolname, -length('_producer'))
from pg_namespace n
cross join lateral aclexplode(n.nspacl) a
join pg_roles r on r.oid = a.grantee
where n.nspname = CAST($1 AS text) and a.privilege_type = 'USAGE' and r.rolname like '%\_producer'
