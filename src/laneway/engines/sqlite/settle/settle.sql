-- name: held_by_channel
-- $1: fence, $2: message ids. How many of them are leased under this fence, by channel.
select channel_id, count(*) from "laneway_lease"
where fence = $1 and message_id in (select value from json_each($2)) group by channel_id

-- name: held_message_keys
-- $1: fence, $2: message ids. The keys of those that are leased under this fence, and the messages
-- that have these.
select c.queue, m.key, m.id, m.key_window, d.message_id, d.behind, d.behind_due
from json_each($2) j cross join "laneway_message" m indexed by "laneway_message_keyed"
cross join "laneway_lease" l cross join "laneway_channel" c
left join "laneway_dedupe" d on d.queue = c.queue and d.key = m.key
where m.id = j.value and m.key is not null and l.fence = $1 and l.message_id = m.id
    and c.id = m.channel_id

-- name: add_completed_history
-- $1: fence, $2: message ids, $3: now, $4: outcome. For those that are leased under this fence.
insert into "laneway_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, k.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due, k.claimed_at, $3,
    length(m.payload), 1, 0, m.priority, c.queue, c.name, m.kind, k.worker, $4
from "laneway_state" s cross join "laneway_claim" k cross join "laneway_lease" l
cross join "laneway_message" m cross join "laneway_channel" c
where s.history = 'all' and k.fence = $1 and l.fence = $1
    and l.message_id in (select value from json_each($2)) and m.id = l.message_id
    and c.id = m.channel_id

-- name: add_waited_history
-- $1: fence, $2: message ids with the milliseconds that each waited inside a worker, or null; $3: now,
-- $4: outcome. As add_completed_history.
insert into "laneway_history" (
    message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at, ended_at,
    payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, k.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due, k.claimed_at,
    min(k.claimed_at + 1000 * json_extract(j.value, '$[1]'), $3), $3, length(m.payload), 1, 0,
    m.priority, c.queue, c.name, m.kind, k.worker, $4
from "laneway_state" s cross join "laneway_claim" k cross join json_each($2) j
cross join "laneway_lease" l cross join "laneway_message" m cross join "laneway_channel" c
where s.history = 'all' and k.fence = $1 and l.fence = $1
    and l.message_id = json_extract(j.value, '$[0]') and m.id = l.message_id and c.id = m.channel_id

-- name: add_stale_history
-- $1: rows of message id and fence whose lease was lost, $2: the verb that was refused, $3: now.
insert into "laneway_history" (
    message_id, fence, attempt, ended_at, terminal, dead, queue, channel, kind, outcome, reason)
select json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), coalesce(m.attempt, 0), $3, 0, 0,
    coalesce(c.queue, ''), coalesce(c.name, ''), coalesce(m.kind, ''), 'stale', $2
from "laneway_state" s cross join json_each($1) j
left join "laneway_message" m on m.id = json_extract(j.value, '$[0]')
left join "laneway_channel" c on c.id = m.channel_id
where s.history <> 'none'

-- name: delete_held_messages
-- $1: fence, $2: message ids. Deletes those that are leased under this fence.
delete from "laneway_message" where id in (
    select message_id from "laneway_lease"
    where fence = $1 and message_id in (select value from json_each($2)))

-- name: extend
-- $1: message, $2: fence, $3: until. Never shortens.
update "laneway_lease" set until = max(until, $3) where fence = $2 and message_id = $1

-- name: once
-- $1: queue, $2: key, $3: keep until, $4: now. Returns a row if the key was not done before.
insert into "laneway_done" (queue, key, keep_until) values ($1, $2, $3)
on conflict (queue, key) do update set keep_until = excluded.keep_until where keep_until <= $4
returning key

-- name: delete_expired_once
-- $1: now. A few keys at a time.
delete from "laneway_done" where (queue, key) in (
    select queue, key from "laneway_done" where keep_until <= $1 order by keep_until limit 5)

-- name: message_states
-- $1: message ids, none of which is waiting.
select m.id, 'leased' from json_each($1) j cross join "laneway_message" m where m.id = j.value
union all
select d.id, 'dead' from json_each($1) j cross join "laneway_dead" d where d.id = j.value

-- name: keep_results
-- $1: message, $2: fence, $3: now, $4: until, $5: outcome, $6: content type, $7: result. If it is leased under this
-- fence: what ends in the same transaction, and nothing else.
insert into "laneway_result" (
    message_id, ended_at, expires_at, queue, channel, kind, outcome, content_type, payload)
select m.id, $3, $4, c.queue, c.name, m.kind, $5, $6, $7
from "laneway_lease" l cross join "laneway_message" m cross join "laneway_channel" c
where l.fence = $2 and l.message_id = $1 and m.id = l.message_id and c.id = m.channel_id
on conflict (message_id) do nothing

-- name: note_progress
-- $1: message, $2: fence, $3: share, $4: note, $5: now. If it is leased under this fence.
insert into "laneway_progress" (message_id, fence, at, share, note)
select l.message_id, l.fence, $5, $3, substr($4, 1, 500) from "laneway_lease" l where l.fence = $2 and l.message_id = $1
on conflict (message_id) do update set fence = excluded.fence, at = excluded.at, share = excluded.share, note = excluded.note
where fence <= excluded.fence

-- name: progress
-- $1: ids.
select p.message_id, p.share, p.note, p.at, p.fence
from json_each($1) j cross join "laneway_progress" p cross join "laneway_lease" l
where p.message_id = j.value and l.fence = p.fence and l.message_id = p.message_id
