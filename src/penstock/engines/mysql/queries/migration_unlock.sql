-- $1: name.
select release_lock($1)
