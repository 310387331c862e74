-- What is in a schema.

-- name: shape
-- All tables of this database whose names begin with the prefix, and what is in them, with the defaults of
-- columns and what views say. $1: prefix with its underscore, $2: its length in characters.
select case t.table_type when 'VIEW' then 'view' else 'table' end, t.table_name, '', v.view_definition
    from information_schema.tables t
    left join information_schema.views v using (table_schema, table_name)
    where t.table_schema = database() and left(t.table_name, $2) = $1
union all
select 'column', c.table_name, c.column_name, c.column_default
    from information_schema.columns c
    join information_schema.tables t using (table_schema, table_name)
    where t.table_type = 'BASE TABLE' and c.table_schema = database() and left(c.table_name, $2) = $1
union all
select distinct 'index', s.table_name, s.index_name, null
    from information_schema.statistics s
    where s.table_schema = database() and left(s.table_name, $2) = $1
