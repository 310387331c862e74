-- name: claim_status
-- What a claim of these queues would find, in one index lookup per queue and column. Writes nothing.
-- $1: queues, $2: now. Returns: ready, blocked, when the next channel wakes or a pause of a queue ends, and whether
-- anything of theirs waits for shared limits.
with paused as materialized (
    select p.queue, p.until from "laneway_pause" p
    where p.kind is null and (p.until is null or p.until > $2)
        and p.queue in (select value from json_each($1))),
open as materialized (
    select q.value from json_each($1) q where q.value not in (select p.queue from paused p))
select
    exists (
        select 1 from open q cross join "laneway_channel" c
        where c.queue = q.value and c.turn is not null)
    or exists (
        select 1 from open q cross join "laneway_channel" c
        where c.queue = q.value and c.wake_at <= $2) as ready,
    exists (
        select 1 from open q cross join "laneway_channel" c
        where c.queue = q.value and c.turn is null and c.waiting > 0 and c.next_due <= $2)
    or exists (select 1 from paused) as blocked,
    (select min(n.at) from (
        select (
            select c.wake_at from "laneway_channel" c
            where c.queue = q.value and c.wake_at > $2 order by c.wake_at limit 1) as at
        from open q
        union all
        select p.until from paused p) n) as next_at,
    exists (
        select 1 from json_each($1) q cross join "laneway_limit_queue" l where l.queue = q.value) as limited

-- name: wake_channels
-- Gives a turn to channels whose wake_at has come, after all others, the earliest first.
-- $1: queue, $2: now, $3: the first turn to give, $4: limit.
update "laneway_channel" set turn = $3 + x.place - 1, wake_at = null
from (
    select y.id, row_number() over (order by y.wake_at, y.id) as place
    from (
        select id, wake_at from "laneway_channel"
        where queue = $1 and wake_at <= $2 order by wake_at limit $4) y
) x
where "laneway_channel".id = x.id

-- name: ready_channels
-- $1: queue, $2: after which turn, $3: limit, $4: now. Channels that can start a message now, in turn; none
-- of a queue that is paused.
select id, turn, weight, concurrency, rate, burst, waiting, leased, bands, tat, credit, skips
from "laneway_channel"
where queue = $1 and turn > $2 and not exists (
    select 1 from "laneway_pause" p
    where p.queue = $1 and p.kind is null and (p.until is null or p.until > $4))
order by turn limit $3

-- name: ready_among
-- $1: channel ids, $2: now. As ready_channels, with the queue before.
select c.queue, c.id, c.turn, c.weight, c.concurrency, c.rate, c.burst, c.waiting, c.leased, c.bands, c.tat, c.credit, c.skips
from json_each($1) j cross join "laneway_channel" c
where c.id = j.value and c.turn is not null and not exists (
    select 1 from "laneway_pause" p
    where p.queue = c.queue and p.kind is null and (p.until is null or p.until > $2))

-- name: due_messages
-- $1: channel, $2: priority, $3: now, $4: limit. In the order in which they start.
select priority, due, message_id from "laneway_waiting"
where channel_id = $1 and priority = $2 and due <= $3 and (expires_at is null or expires_at > $3)
order by due, message_id limit $4

-- name: high_priorities
-- $1: channel, $2: from which priority on. Those that its waiting messages have, the highest first: from one to the
-- next lower one, whatever number of messages lies between.
with recursive p (value) as (
    select (select max(w.priority) from "laneway_waiting" w where w.channel_id = $1 and w.priority >= $2)
    union all
    select (select max(w.priority) from "laneway_waiting" w
        where w.channel_id = $1 and w.priority >= $2 and w.priority < p.value)
    from p where p.value is not null
)
select value from p where value is not null

-- name: add_claim
-- $1: fence, $2: until, $3: now, $4: worker.
insert into "laneway_claim" (fence, until, claimed_at, worker) values ($1, $2, $3, $4)

-- name: add_leases
-- $1: channel, $2: priority, $3 and $4: due and id of the last message, $5: now, $6: fence, $7: until.
insert into "laneway_lease" (fence, message_id, channel_id, until)
select $6, message_id, channel_id, $7 from "laneway_waiting"
where channel_id = $1 and priority = $2 and (due, message_id) <= ($3, $4)
    and (expires_at is null or expires_at > $5)

-- name: delete_claimed_waiting
-- A claim always takes the first messages of a priority, so the last one tells which they are.
-- $1: channel, $2: priority, $3 and $4: due and id of the last message, $5: now.
delete from "laneway_waiting"
where channel_id = $1 and priority = $2 and (due, message_id) <= ($3, $4)
    and (expires_at is null or expires_at > $5)

-- name: claimed_messages
-- $1: message ids, in the order in which they start; $2: fence, $3: now. The last column: since when and
-- until when the kind is paused.
select m.id, $2, c.queue, c.name, m.kind, m.priority, m.attempt + 1, m.max_attempts,
    m.due / 1e6, m.published_at / 1e6, m.first_published_at / 1e6, m.expires_at / 1e6,
    substr(m.key, 17) as key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
    (select json_array(p.since, p.until) from "laneway_pause" p
    where p.queue = c.queue and p.kind = m.kind and (p.until is null or p.until > $3))
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
where m.id = j.value and c.id = m.channel_id

-- name: next_due
-- $1: channel, $2: priorities, $3: now. For each of them when its first unexpired message is due.
select p.value as priority, (
    select w.due from "laneway_waiting" w
    where w.channel_id = $1 and w.priority = p.value and (w.expires_at is null or w.expires_at > $3)
    order by w.due limit 1) as due
from json_each($2) p

-- name: update_served_channel
-- $1: channel, $2..$11: its counts and schedule after a claim.
update "laneway_channel" set
    waiting = $2, leased = $3, bands = $4, next_due = $5, open_at = $6, tat = $7, credit = $8,
    skips = $9, turn = $10, wake_at = $11
where id = $1

-- name: fair_paces
-- $1: queues. Of those that are fair by time: how much every channel has had (where the lowest is that can start
-- something), and how far ahead of that one may get.
select q.queue, coalesce((
        select f.booked from "laneway_fair_channel" f cross join "laneway_channel" c
        where f.queue = q.queue and f.booked >= q.reached - 100 * q.turn and c.id = f.channel_id and c.turn is not null
        order by f.booked limit 1), q.reached), q.turn
from json_each($1) j cross join "laneway_fair_queue" q where q.queue = j.value

-- name: note_reached
-- $1: queue, $2: how much every channel has had.
update "laneway_fair_queue" set reached = $2 where queue = $1 and reached < $2

-- name: fair_channels
-- $1: channel ids.
select f.channel_id, f.used, f.booked, f.cost, f.since, f.ended, f.took, f.ended_at, f.emptied
from json_each($1) j cross join "laneway_fair_channel" f where f.channel_id = j.value

-- name: note_time
-- $1: channel, $2..$5: what is remembered of it, $6: whether nothing waits in it. What has ended is charged.
insert into "laneway_fair_channel" (channel_id, queue, used, booked, cost, since, emptied)
select c.id, c.queue, $2, $3, $4, $5, $6 from "laneway_channel" c where c.id = $1
on conflict (channel_id) do update set used = excluded.used, booked = excluded.booked, cost = excluded.cost,
    since = excluded.since, emptied = excluded.emptied, ended = 0, took = 0

-- name: set_turn
-- $1: the last turn that was given.
update "laneway_state" set turn = $1
