-- What the owner of a claim stream does. Each function checks the epoch: a later owner has a higher one.

-- name: stream_open
select o.epoch, o.query from "laneway".open_stream_v1($stream, $lease::interval) o

-- name: stream_begin
select "laneway".begin_stream_v1($stream, $epoch, $query, $new_query)

-- name: stream_hold
select "laneway".hold_stream_v1($stream, $epoch, $query)

-- name: stream_claim
select c.n, c.answer, c.floors
from "laneway".claim_stream_v1(
    $stream, $epoch, $query, $seq, $queues::text[], $limit, $lease::interval, $floors::text) c

-- name: stream_items
-- The messages of a batch, in the order in which they were claimed.
select i.message_id, i.fence
from "laneway".stream_item i
where i.stream = $stream and i.seq = $seq
order by i.place

-- name: stream_complete
select c.completed, c.lost from "laneway".complete_stream_v1($stream, $epoch, $query, $through) c

-- name: stream_extend
select e.held, e.lost from "laneway".extend_stream_v1($stream, $epoch, $query, $lease::interval) e

-- name: stream_waiting
-- How many messages could be claimed now.
select coalesce(sum(c.waiting), 0) from "laneway".channel_stats_v1 c where c.queue = any($queues::text[])

-- name: upkeep
select u.ran from "laneway".upkeep_v1() u

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
