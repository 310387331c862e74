-- $1: schema. Rows nobody can see any more, and tables whose autovacuum somebody turned off.
select s.relname as name, s.n_live_tup as live, s.n_dead_tup as dead,
    coalesce('autovacuum_enabled=false' = any(c.reloptions), false) as vacuum_off,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where s.schemaname = CAST($1 AS text)
order by s.n_dead_tup desc, s.relname
