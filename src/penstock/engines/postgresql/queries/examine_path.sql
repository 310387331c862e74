-- Schemas that this session's names are looked up in, and in which anybody may create things.
select n.nspname from pg_catalog.pg_namespace n
where n.nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false))
    and pg_catalog.has_schema_privilege('public', n.oid, 'create')
order by n.nspname
