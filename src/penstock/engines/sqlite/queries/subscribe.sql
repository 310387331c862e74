-- $1: topic, $2: queue, $3: channel, $4: kind.
insert into "penstock_subscription" (topic, queue, channel, kind) values ($1, $2, $3, $4)
on conflict (topic, queue) do update set channel = excluded.channel, kind = excluded.kind
