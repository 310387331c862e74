-- name: begin_write
-- Takes the write lock and reserves numbers. $1, $2, $3: how many message ids, fences and turns.
-- Returns the last of each, until when anybody listens to events, how many queues are claimed by kind, and whether
-- there are flows.
update "laneway_state" set message_id = message_id + $1, fence = fence + $2, turn = turn + $3
returning message_id, fence, turn, backoff_initial, backoff_max,
    (select max(until) from "laneway_listener") as heard_until, by_kind,
    exists (select 1 from "laneway_flow") as has_flows

-- name: begin_write_before_flows
-- The same in a schema that may be of a version without flows.
update "laneway_state" set message_id = message_id + $1, fence = fence + $2, turn = turn + $3
returning message_id, fence, turn, backoff_initial, backoff_max,
    (select max(until) from "laneway_listener") as heard_until, by_kind, 0 as has_flows

-- name: flow_tables
-- $1: the name of the table of flows. Whether this version of the schema has it.
select 1 from sqlite_master where type = 'table' and name = $1

-- name: any_flow
select exists (select 1 from "laneway_flow")
