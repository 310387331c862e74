-- $1: topic, $2: queue, $3: channel, $4: kind.
insert into "penstock".subscription (topic, queue, channel, kind)
values (CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text))
on conflict (topic, queue) do update set channel = excluded.channel, kind = excluded.kind
returning topic
