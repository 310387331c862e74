-- $1: queue, $2: name, $3: now.
insert into "penstock_channel" (queue, name, created_at) values ($1, $2, $3)
