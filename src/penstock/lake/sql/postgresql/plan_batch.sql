-- What the range holds, as the database sees it: the files must say the same. Two syncs at once plan the
-- same batch; the first one's range holds.
insert into {schema}.lake_commit (lake, batch, from_xid, from_id, to_xid, to_id, rows, checksum, first_ended_at, last_ended_at)
select {lake}, {batch}, {from_xid}, {from_id}, {to_xid}, {to_id}, count(*),
    sum(('x' || left(md5(concat_ws(chr(31),
        r.id::text, r.xid::text, r.message_id::text, r.queue, r.channel, r.kind, coalesce(r.priority::text, '~'),
        r.attempt::text, coalesce(r.fence::text, '~'), coalesce(r.worker, '~'), r.outcome, coalesce(r.reason, '~'),
        coalesce(r.error_type, '~'), coalesce(r.error, '~'),
        coalesce((extract(epoch from r.first_published_at) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.published_at) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.due) * 1000000)::bigint::text, '~'),
        coalesce((extract(epoch from r.claimed_at) * 1000000)::bigint::text, '~'),
        (extract(epoch from r.ended_at) * 1000000)::bigint::text, coalesce(r.payload_size::text, '~'),
        r.terminal::text, r.dead::text)), 15))::bit(60)::bigint),
    min(r.ended_at), max(r.ended_at)
from ({rows}) r
on conflict do nothing
