-- What is in a stream's batches, as far as its leases still hold it.
create view "laneway".stream_message_v1 as
select i.stream, i.seq, i.place, m.id, m.queue, m.channel, m.kind, m.key, m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1 as attempt, m.max_attempts, m.content_type, m.headers,
    octet_length(m.payload)::bigint as payload_size, m.payload, m.state_type, m.state, l.fence, l.claimed_at, l.until
from "laneway".stream_item i
join "laneway".lease l on l.message_id = i.message_id and l.fence = i.fence
join "laneway".message m on m.id = i.message_id;

create view "laneway".stream_v1 as
select s.name, s.epoch, s.opened_at,
    (select count(*) from "laneway".stream_item i where i.stream = s.name) as held
from "laneway".stream s;
