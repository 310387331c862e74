-- name: begin_write
-- Takes the write lock and reserves numbers. $1, $2, $3: how many message ids, fences and turns.
-- Returns the last of each, until when anybody listens to events, how many queues are claimed by kind, how many
-- flows there are, and how many queues are fair by time.
update "laneway_state" set message_id = message_id + $1, fence = fence + $2, turn = turn + $3
returning message_id, fence, turn, backoff_initial, backoff_max,
    (select max(until) from "laneway_listener") as heard_until, by_kind, flows, fair
