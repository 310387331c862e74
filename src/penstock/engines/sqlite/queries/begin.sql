-- $1, $2, $3: how many message ids, fences and turns are wanted; the last ones come back,
-- and until when anybody listens to events.
update "penstock_state" set message_id = message_id + $1, fence = fence + $2, turn = turn + $3
returning message_id, fence, turn, backoff_first, backoff_most,
    (select max(until) from "penstock_listener") as heard_until
