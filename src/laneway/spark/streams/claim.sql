-- name: claim_cuts
-- The last place in each batch. Places before it may be missing: tasks took those messages over.
select i.seq, max(i.place)
from "laneway".stream_item i
where i.stream = $stream and i.seq > $from_seq and i.seq <= $to_seq
group by i.seq
order by i.seq

-- name: claim_rows
select $columns:names
from (
    select m.id, m.queue, m.channel, m.kind, m.key, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.content_type, cast(m.headers as text) as headers, m.payload_size, m.payload, m.due,
        m.expires_at, m.fence, m.claimed_at, m.state_type, m.state
    from "laneway".stream_message_v1 m
    where m.stream = $stream and m.seq = $seq and m.place > $from_place and m.place <= $to_place
) h
