-- name: dead_letter_channels
-- $1: ids. Those that are dead letters, with their channels, by id.
select d.id, d.queue, d.channel from json_each($1) j cross join "laneway_dead" d
where d.id = j.value order by d.id

-- name: redrive
-- $1: ids of dead letters, $2: due, $3: new max_attempts (null: unchanged), $4: now. The messages keep
-- their id, attempt count and first_published_at.
insert into "laneway_message" (
    id, channel_id, priority, due, published_at, first_published_at, attempt, max_attempts, kind, key,
    key_window, content_type, headers, state_type, state, payload)
select d.id, c.id, d.priority, $2, $4, d.first_published_at, d.attempt, coalesce($3, d.max_attempts),
    d.kind, d.key, d.key_window, d.content_type, d.headers, d.state_type, d.state, d.payload
from json_each($1) j cross join "laneway_dead" d cross join "laneway_channel" c
where d.id = j.value and c.queue = d.queue and c.name = d.channel
returning id, channel_id, priority

-- name: add_dead_letter_history
-- $1: ids of dead letters, $2: outcome, $3: terminal, $4: now.
insert into "laneway_history" (
    message_id, attempt, first_published_at, published_at, ended_at, payload_size, terminal, dead,
    priority, queue, channel, kind, outcome, reason, error_type)
select d.id, d.attempt, d.first_published_at, d.published_at, $4, length(d.payload), $3, 0,
    d.priority, d.queue, d.channel, d.kind, $2, d.reason, d.error_type
from "laneway_state" s cross join "laneway_dead" d
where s.history <> 'none' and d.id in (select value from json_each($1))

-- name: subtract_dead_counts
-- $1: ids of dead letters that are about to be deleted.
insert into "laneway_dead_count" (queue, channel, n)
select queue, channel, -count(*) from "laneway_dead"
where id in (select value from json_each($1)) group by queue, channel
on conflict (queue, channel) do update set n = n + excluded.n

-- name: delete_dead_letters
-- $1: ids.
delete from "laneway_dead" where id in (select value from json_each($1))
returning id, queue, key, key_window

-- name: keep_discarded
-- $1: ids of dead letters, $2: now. As keep_ended.
insert into "laneway_result" (
    message_id, ended_at, expires_at, queue, channel, kind, outcome, reason, error_type, error)
select d.id, $2, $2 + cast(1000000 * max(min(json_extract(d.headers, '$."laneway-keep-result"'), 315360000), 0) as integer),
    d.queue, d.channel, d.kind, 'discarded', d.reason, d.error_type, d.error
from json_each($1) j cross join "laneway_dead" d
where d.id = j.value and d.headers is not null and json_type(d.headers, '$."laneway-keep-result"') in ('integer', 'real')
on conflict (message_id) do nothing
