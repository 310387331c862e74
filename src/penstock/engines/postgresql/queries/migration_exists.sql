-- $1: schema.
select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = CAST($1 AS text) and c.relname = 'migration')
