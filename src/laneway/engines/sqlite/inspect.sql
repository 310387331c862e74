-- name: history
-- $1: message id.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway_history" where message_id = $1 order by id

-- name: settings
select history, history_days, backoff_initial, backoff_max, audit_days from "laneway_state"

-- name: configure
-- $1: history, $2: history_days, $3: backoff_initial, $4: backoff_max, $5: audit_days; null: unchanged.
update "laneway_state" set
    history = coalesce($1, history), history_days = coalesce($2, history_days),
    backoff_initial = coalesce($3, backoff_initial), backoff_max = coalesce($4, backoff_max),
    audit_days = coalesce($5, audit_days)
returning history, history_days, backoff_initial, backoff_max, audit_days

-- name: open_gap
-- $1: now. From now on not all of the history is kept. What began before and was not counted yet may be
-- missed too: messages that were published, attempts that are under way.
insert into "laneway_history_gap" (begins)
select min($1,
    coalesce((select m.first_published_at from "laneway_message" m
        where m.id > (select f.message_id from "laneway_fold" f) order by m.id limit 1), $1),
    coalesce((select k.claimed_at from "laneway_claim" k order by k.fence limit 1), $1))
where not exists (select 1 from "laneway_history_gap" where ends is null)

-- name: close_gap
-- $1: now.
update "laneway_history_gap" set ends = $1 where ends is null

-- name: forget_kind_counts
-- The history does not keep everything any more: the counts by kind miss what ends from now on.
update "laneway_fold" set history_changes = history_changes + 1

-- name: message_ids
-- $1: id of the last one seen, $2: limit, $3: kind, null for all. Ids, and whether they are of this kind.
select id, $3 is null or kind = $3 from "laneway_message" where id > $1 order by id limit $2

-- name: dead_ids
-- $1: id of the last one seen, $2: limit, $3: kind, null for all.
select id, $3 is null or kind = $3 from "laneway_dead" where id > $1 order by id limit $2

-- name: leased_ids
-- $1: id of the last one seen, $2: limit, $3: kind, which a lease does not know. Reads all leases: there are
-- as many as work is under way.
select message_id, $3 is $3 from "laneway_lease" where message_id > $1 order by message_id limit $2

-- name: channel_ids
-- $1: queues, $2: the channel's name.
select c.id from json_each($1) j cross join "laneway_channel" c where c.queue = j.value and c.name = $2

-- name: count_messages
-- $1: channel ids. How many messages they have.
select coalesce(sum(c.waiting + c.leased), 0)
from json_each($1) j cross join "laneway_channel" c where c.id = j.value

-- name: messages_of_channels
-- $1: channel ids.
select w.message_id from json_each($1) j cross join "laneway_waiting" w where w.channel_id = j.value
union all
select message_id from "laneway_lease" where channel_id in (select value from json_each($1))

-- name: dead_of_queue
-- $1: queue, $2: limit.
select id from "laneway_dead" where queue = $1 limit $2

-- name: messages
-- $1: ids in order, $2: limit; $3: queue, $4: channel, $5: kind, $6: state, null matches all; $7: now. What
-- does not wait is leased.
select id, queue, channel, kind, key, state, priority, due, published_at, first_published_at, expires_at,
    attempt + (state = 'leased'), max_attempts, content_type, headers, payload_size, null, null, null, null
from (
    select m.id, c.queue, c.name as channel, m.kind, substr(m.key, 17) as key,
        case when not exists (
                select 1 from "laneway_waiting" w where w.channel_id = m.channel_id
                    and w.priority = m.priority and w.due = m.due and w.message_id = m.id)
            then 'leased' when m.due > $7 then 'scheduled' else 'waiting' end as state,
        m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
        m.attempt, m.max_attempts, m.content_type, m.headers, length(m.payload) as payload_size
    from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
    where m.id = j.value and c.id = m.channel_id and ($3 is null or c.queue = $3)
        and ($4 is null or c.name = $4) and ($5 is null or m.kind = $5)
)
where $6 is null or state = $6
limit $2

-- name: leases_of_messages
-- $1: message ids. Reads all leases: there are as many as work is under way.
select l.message_id, l.fence, k.worker, k.claimed_at, l.until
from "laneway_lease" l cross join "laneway_claim" k
where l.message_id in (select value from json_each($1)) and k.fence = l.fence

-- name: messages_dead
-- $1: ids in order, $2: limit; $3: queue, $4: channel, $5: kind, null matches all.
select d.id, d.queue, d.channel, d.kind, substr(d.key, 17) as key, 'dead', d.priority, null, d.published_at,
    d.first_published_at, null, d.attempt, d.max_attempts, d.content_type, d.headers, length(d.payload),
    null, null, null, null, d.died_at, d.reason, d.error_type, d.error
from json_each($1) j cross join "laneway_dead" d
where d.id = j.value and ($3 is null or d.queue = $3) and ($4 is null or d.channel = $4)
    and ($5 is null or d.kind = $5)
limit $2

-- name: messages_leased
-- $1: ids, $2: limit; $3: queue, $4: channel, $5: kind, null matches all.
select m.id, c.queue, c.name, m.kind, substr(m.key, 17) as key, 'leased', m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1, m.max_attempts, m.content_type, m.headers,
    length(m.payload), l.fence, k.worker, k.claimed_at, l.until
from "laneway_lease" l cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_claim" k
where l.message_id in (select value from json_each($1)) and m.id = l.message_id and c.id = m.channel_id
    and k.fence = l.fence and ($3 is null or c.queue = $3) and ($4 is null or c.name = $4)
    and ($5 is null or m.kind = $5)
order by m.id limit $2

-- name: message
-- $1: id, $2: now. One statement, so that a message that dies meanwhile is found exactly once.
select m.id, c.queue, c.name, m.kind, substr(m.key, 17) as key,
    case when l.fence is not null then 'leased' when m.due > $2 then 'scheduled' else 'waiting' end,
    m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    m.attempt + (l.fence is not null), m.max_attempts, m.content_type, m.headers, length(m.payload),
    l.fence, k.worker, k.claimed_at, l.until, null, null, null, null, null
from "laneway_message" m
join "laneway_channel" c on c.id = m.channel_id
left join "laneway_lease" l on l.message_id = m.id
left join "laneway_claim" k on k.fence = l.fence
where m.id = $1
union all
select id, queue, channel, kind, substr(key, 17) as key, 'dead', priority, null, published_at, first_published_at, null,
    attempt, max_attempts, content_type, headers, length(payload), null, null, null, null, died_at,
    reason, error_type, error, traceback
from "laneway_dead" where id = $1

-- name: payload
-- $1: id.
select payload from "laneway_message" where id = $1
union all
select payload from "laneway_dead" where id = $1

-- name: saved_state
-- $1: id.
select state from "laneway_message" where id = $1
union all
select state from "laneway_dead" where id = $1

-- name: history_since
-- $1: the last id seen, $2: limit.
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway_history" where id > $1 order by id limit $2

-- name: totals
-- $1: the name of the history table. Reads counters only.
select message_id, coalesce((select seq from sqlite_sequence where name = $1), 0) from "laneway_state"
