-- How many bytes the history has; no statistics are needed for this.
select coalesce(sum(pg_relation_size(i.inhrelid)), 0)::bigint
from pg_inherits i
where i.inhparent = to_regclass(format('%I.history', {of}::text))
