-- Batch reads from MySQL, MariaDB and SQLite, by ranges of ids. *_cuts returns the last id of each
-- partition: every $rows-th row, and the last one.

-- name: history_cuts
select p.id
from (
    select h.id, row_number() over (order by h.id) as place, count(*) over () as n
    from `laneway_history_v1` h
    where ($queue is null or h.queue = $queue)
        and ($channel is null or h.channel = $channel)
        and ($kind is null or h.kind = $kind)
        and ($since:moment is null or h.ended_at >= $since:moment)
        and ($until:moment is null or h.ended_at < $until:moment)
        and h.id > $from_id and h.id <= $to_id
) p
where p.place % $rows = 0 or p.place = p.n
order by p.id

-- name: history_rows
select $columns:names
from `laneway_history_v1` h
where ($queue is null or h.queue = $queue)
    and ($channel is null or h.channel = $channel)
    and ($kind is null or h.kind = $kind)
    and ($since:moment is null or h.ended_at >= $since:moment)
    and ($until:moment is null or h.ended_at < $until:moment)
    and h.id > $from_id and h.id <= $to_id

-- name: message_cuts
select p.id
from (
    select h.id, row_number() over (order by h.id) as place, count(*) over () as n
    from `laneway_message_v1` h
    where ($queue is null or h.queue = $queue)
        and ($channel is null or h.channel = $channel)
        and ($kind is null or h.kind = $kind)
        and ($since:moment is null or h.published_at >= $since:moment)
        and ($until:moment is null or h.published_at < $until:moment)
        and h.id > $from_id and h.id <= $to_id
) p
where p.place % $rows = 0 or p.place = p.n
order by p.id

-- name: message_rows
select $columns:names
from `laneway_message_v1` h
where ($queue is null or h.queue = $queue)
    and ($channel is null or h.channel = $channel)
    and ($kind is null or h.kind = $kind)
    and ($since:moment is null or h.published_at >= $since:moment)
    and ($until:moment is null or h.published_at < $until:moment)
    and h.id > $from_id and h.id <= $to_id

-- name: dead_letter_cuts
select p.id
from (
    select h.id, row_number() over (order by h.id) as place, count(*) over () as n
    from `laneway_dead_letter_v1` h
    where ($queue is null or h.queue = $queue)
        and ($channel is null or h.channel = $channel)
        and ($kind is null or h.kind = $kind)
        and ($since:moment is null or h.died_at >= $since:moment)
        and ($until:moment is null or h.died_at < $until:moment)
        and h.id > $from_id and h.id <= $to_id
) p
where p.place % $rows = 0 or p.place = p.n
order by p.id

-- name: dead_letter_rows
select $columns:names
from `laneway_dead_letter_v1` h
where ($queue is null or h.queue = $queue)
    and ($channel is null or h.channel = $channel)
    and ($kind is null or h.kind = $kind)
    and ($since:moment is null or h.died_at >= $since:moment)
    and ($until:moment is null or h.died_at < $until:moment)
    and h.id > $from_id and h.id <= $to_id
