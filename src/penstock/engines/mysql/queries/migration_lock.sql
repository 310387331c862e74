-- $1: name. One process at a time migrates; its session holds the lock, because MySQL commits every
-- change of a table by itself.
select get_lock($1, 60)
