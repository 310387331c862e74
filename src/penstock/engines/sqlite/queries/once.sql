-- $1: queue, $2: key, $3: until when to remember it, $4: now. A row if it was not done before.
insert into "penstock_done" (queue, key, keep_until) values ($1, $2, $3)
on conflict (queue, key) do update set keep_until = excluded.keep_until where keep_until <= $4
returning key
