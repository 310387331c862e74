-- What is in a schema.

-- name: shape
-- All that is in the schema, with the bodies of functions, what views say, the defaults of columns and the
-- checks of tables. $1: schema. An index that is not valid is as good as none.
select 'function', CAST(proname AS text), prosrc
    from pg_proc
    where pronamespace = (select oid from pg_namespace where nspname = $1)
union all
select
    case c.relkind
        when 'r' then 'table' when 'p' then 'table' when 'v' then 'view' when 'S' then 'sequence'
        when 'c' then 'type' else 'index'
    end, CAST(c.relname AS text), case when c.relkind = 'v' then pg_get_viewdef(c.oid) end
    from pg_class c
    left join pg_index i on i.indexrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1)
        and c.relkind in ('r', 'p', 'v', 'S', 'c', 'i', 'I') and coalesce(i.indisvalid, true)
union all
select 'column', c.relname || '.' || a.attname, pg_get_expr(d.adbin, d.adrelid)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum and a.attgenerated = ''
    where c.relnamespace = (select oid from pg_namespace where nspname = $1)
        and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
union all
select 'primary key', CAST(c.relname AS text), null
    from pg_class c
    join pg_constraint k on k.conrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1) and k.contype = 'p'
union all
select 'check', CAST(c.relname AS text), pg_get_constraintdef(k.oid)
    from pg_class c
    join pg_constraint k on k.conrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1) and k.contype = 'c'
