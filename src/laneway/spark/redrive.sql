-- name: clock
select clock_timestamp()

-- name: redrive
-- What died after the run began is not part of it: a task that is retried takes nothing twice.
select count(*)
from "laneway".redrive_v1(
    array(select d.id from "laneway".dead_letter_v1 d where d.id = any($ids::bigint[]) and d.died_at < $until),
    $max_attempts::integer, $delay::interval)
