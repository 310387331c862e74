-- $1: rows of queue and name, $2: now.
insert into "penstock_channel" (queue, name, created_at)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), $2 from json_each($1) where true
on conflict (queue, name) do nothing
