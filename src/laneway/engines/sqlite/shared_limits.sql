-- name: add_limits
-- $1: names, $2: now.
insert or ignore into "laneway_shared_limit" (name, created_at) select value, $2 from json_each($1)

-- name: delete_ended_limit_leases
-- $1: names.
delete from "laneway_limit_lease"
where name in (select value from json_each($1)) and not exists (
    select 1 from "laneway_lease" l
    where l.fence = "laneway_limit_lease".fence and l.message_id = "laneway_limit_lease".message_id)
returning name, round, outcome, ended_at

-- name: controlled_limits
-- $1: names. Those that adapt or have a breaker.
select name from "laneway_shared_limit"
where name in (select value from json_each($1)) and (adapt_min is not null or breaker_window is not null)

-- name: limit_rounds
-- $1: name. Of what runs behind it.
select round from "laneway_limit_lease" where name = $1

-- name: limit_control
-- $1: name. The columns of LimitControl.
select concurrency, set_concurrency, rest_until, adapt_min, adapt_max, adapted, successes, breaker_failures,
    breaker_window, breaker_minimum, breaker_pause, opened_at, open_until, recent, round, adapt_round, breaker_round
from "laneway_shared_limit" where name = $1

-- name: set_limit_control
-- $1: name, $2..$18: the columns of LimitControl.
update "laneway_shared_limit" set concurrency = $2, set_concurrency = $3, rest_until = $4, adapt_min = $5,
    adapt_max = $6, adapted = $7, successes = $8, breaker_failures = $9, breaker_window = $10, breaker_minimum = $11,
    breaker_pause = $12, opened_at = $13, open_until = $14, recent = $15, round = $16, adapt_round = $17,
    breaker_round = $18
where name = $1

-- name: note_limit
-- $1: name, $2: message, $3: fence, $4: outcome, $5: now. What was taken back stays expired.
update "laneway_limit_lease" set outcome = $4, ended_at = $5
where name = $1 and message_id = $2 and fence = $3 and outcome is not 5

-- name: ended_limits
-- Those that adapt or have a breaker, and behind which something has ended.
select l.name from "laneway_shared_limit" l
where (l.adapt_min is not null or l.breaker_window is not null) and exists (
    select 1 from "laneway_limit_lease" k where k.name = l.name and not exists (
        select 1 from "laneway_lease" e where e.fence = k.fence and e.message_id = k.message_id))

-- name: limit_states
-- $1: names, $2: now, $3: messages that were claimed, which are not about to come.
select l.name, l.concurrency, l.rate, l.burst, l.tat, l.rest_until, l.round,
    (select count(*) from "laneway_limit_lease" k cross join "laneway_lease" e
    where k.name = l.name and e.fence = k.fence and e.message_id = k.message_id),
    (select count(*) from "laneway_limit_wait" w
    where w.released > $2 - 1000000 and w.message_id not in (select value from json_each($3))
        and instr(',' || w.limits || ',', ',' || l.name || ','))
from json_each($1) j cross join "laneway_shared_limit" l where l.name = j.value

-- name: add_limit_lease
-- $1: name, $2: message, $3: fence, $4: round.
insert or replace into "laneway_limit_lease" (name, message_id, fence, round) values ($1, $2, $3, $4)

-- name: set_limit_arrival
-- $1: name, $2: theoretical arrival time.
update "laneway_shared_limit" set tat = $2 where name = $1

-- name: limit_waits
-- $1: message ids.
select w.message_id, w.released is not null, w.charge
from json_each($1) j cross join "laneway_limit_wait" w where w.message_id = j.value

-- name: held_limits
-- $1: sets of limits.
select j.value from json_each($1) j where exists (
    select 1 from "laneway_limit_lane" l where l.limits = j.value and l.waiting)

-- name: all_limit_sets
select distinct limits from "laneway_limit_queue"

-- name: delete_limit_waits
-- $1: message ids.
delete from "laneway_limit_wait" where message_id in (select value from json_each($1))

-- name: add_limit_lane
-- $1: limits, $2: message, $3: what it gets back, $4: where the others are, where a lane joins that comes back, $5: now.
insert into "laneway_limit_lane" (limits, channel_id, queue, pass, waiting, used)
select $1, c.id, c.queue, $4 - $3, 1, $5
from "laneway_message" m cross join "laneway_channel" c where m.id = $2 and c.id = m.channel_id
on conflict (limits, channel_id) do update set waiting = 1, used = $5,
    pass = case when waiting then pass - $3 else max(pass - $3, excluded.pass) end

-- name: limit_lane
-- $1: limits, $2: message. The columns of LimitLane.
select m.channel_id, c.queue, c.weight, l.pass, max(m.due, m.published_at)
from "laneway_message" m cross join "laneway_channel" c
left join "laneway_limit_lane" l on l.limits = $1 and l.channel_id = m.channel_id
where m.id = $2 and c.id = m.channel_id

-- name: charge_limit_lane
-- $1: limits, $2: channel, $3: queue, $4: where it begins, $5: what it is charged, $6: now.
insert into "laneway_limit_lane" (limits, channel_id, queue, pass, waiting, used) values ($1, $2, $3, $4 + $5, 0, $6)
on conflict (limits, channel_id) do update set pass = max(pass, $4) + $5, used = $6

-- name: limit_clock
-- $1: limits.
select points from "laneway_limit_clock" where limits = $1

-- name: set_limit_clock
-- $1: limits, $2: points, $3: now.
insert or replace into "laneway_limit_clock" (limits, points, at) values ($1, $2, $3)

-- name: limited_dues
-- $1: message ids. From when on they were due.
select m.id, max(m.due, m.published_at) from json_each($1) j cross join "laneway_message" m where m.id = j.value

-- name: limit_passes
-- $1: sets of limits. The lowest of the lanes that wait, the highest of the others.
select j.value,
    (select min(l.pass) from "laneway_limit_lane" l where l.limits = j.value and l.waiting),
    (select max(l.pass) from "laneway_limit_lane" l where l.limits = j.value and not l.waiting)
from json_each($1) j

-- name: add_limit_queue
-- $1: limits, $2: message.
insert or ignore into "laneway_limit_queue" (queue, limits)
select c.queue, $1 from "laneway_message" m cross join "laneway_channel" c where m.id = $2 and c.id = m.channel_id

-- name: add_limit_wait
-- $1: limits, $2: message. One that waited before keeps its place.
insert into "laneway_limit_wait" (message_id, limits, channel_id, kind, priority, due)
select m.id, $1, m.channel_id, m.kind, m.priority, m.due from "laneway_message" m where m.id = $2
on conflict (message_id) do update set limits = excluded.limits, released = null, charge = 0

-- name: behind_limited
-- $1: ids of messages that have to wait, $2: now. What waits in their channels and has headers, as far as the next
-- thousand tell; not what was made due and is about to start. Others than of the lowest priority ask by themselves.
select x.channel_id, 0, x.due, x.message_id, m.headers from (
    select w.channel_id, w.due, w.message_id
    from (
        select distinct k.channel_id from json_each($1) j cross join "laneway_message" k where k.id = j.value) c
    cross join "laneway_waiting" w
    where w.channel_id = c.channel_id and w.priority = 0 and w.due <= $2 limit 1000) x
cross join "laneway_message" m
where m.id = x.message_id and m.headers is not null and not exists (
    select 1 from "laneway_limit_wait" k where k.message_id = m.id)

-- name: limit_sets
-- $1: queues. Sets of limits that something of these queues waits for.
select x.limits from (
    select q.limits, (
        select min(l.pass) from "laneway_limit_lane" l where l.limits = q.limits and l.waiting) as pass
    from "laneway_limit_queue" q where q.queue in (select value from json_each($1)) group by q.limits) x
where x.pass is not null order by x.pass, (
    select printf('%020d %020d', w.due, w.message_id)
    from "laneway_limit_wait" w where w.limits = x.limits and w.released is null and w.channel_id = (
        select l.channel_id from "laneway_limit_lane" l where l.limits = x.limits and l.waiting
        order by l.pass, l.channel_id limit 1)
    order by w.priority desc, w.due, w.message_id limit 1), x.limits

-- name: limit_lanes
-- $1: limits, $2: queues, $3: kinds, or null, $4: limit, $5: now. Whose channels may start something.
select l.channel_id, l.pass, c.weight, c.concurrency - c.leased
from "laneway_limit_lane" l cross join "laneway_channel" c
where l.limits = $1 and l.waiting and c.id = l.channel_id and l.queue in (select value from json_each($2))
    and not (c.paused and coalesce(c.paused_until > $5, 1)) and coalesce(c.leased < c.concurrency, 1)
    and (c.concurrency is null and c.rate is null or not exists (
        select 1 from "laneway_limit_wait" w where w.released > $5 - 1000000 and w.channel_id = l.channel_id))
    and ($3 is null or exists (
        select 1 from "laneway_limit_wait" w
        where w.limits = $1 and w.channel_id = l.channel_id and w.released is null
            and w.kind in (select value from json_each($3))))
order by l.pass, l.channel_id limit $4

-- name: next_limited
-- $1: limits, $2: channel, $3: kinds, or null, $4: limit.
select message_id from "laneway_limit_wait"
where limits = $1 and channel_id = $2 and released is null
    and ($3 is null or kind in (select value from json_each($3)))
order by priority desc, due, message_id limit $4

-- name: release_limit_waits
-- $1: message ids, $2: now, $3: what each costs its lane.
update "laneway_limit_wait" set released = $2, charge = $3 where message_id in (select value from json_each($1))

-- name: move_limit_lane
-- $1: limits, $2: channel, $3: what was taken, by weight, $4: now.
update "laneway_limit_lane" set pass = pass + $3, used = $4, waiting = exists (
    select 1 from "laneway_limit_wait" w where w.limits = $1 and w.channel_id = $2 and w.released is null)
where limits = $1 and channel_id = $2

-- name: limit_dues
-- $1: message ids, $2: now. When those were due that still wait.
select w.message_id, min(w.due, $2)
from json_each($1) j cross join "laneway_limit_wait" w cross join "laneway_message" m
where w.message_id = j.value and m.id = w.message_id

-- name: shared_limit
-- $1: name.
select rate, burst, tat from "laneway_shared_limit" where name = $1

-- name: set_shared_limit
-- $1: name, $2: rate, $3: burst, $4: theoretical arrival time.
update "laneway_shared_limit" set rate = $2, burst = $3, tat = $4 where name = $1

-- name: rest_shared_limit
-- $1: name, $2: until.
update "laneway_shared_limit" set rest_until = max(coalesce(rest_until, 0), $2) where name = $1

-- name: remove_shared_limit
-- $1: name.
delete from "laneway_shared_limit" where name = $1 returning 1

-- name: shared_limits
select l.name, l.rate, l.burst,
    (select count(*) from "laneway_limit_lease" k cross join "laneway_lease" e
    where k.name = l.name and e.fence = k.fence and e.message_id = k.message_id),
    (select count(*) from (
        select 1 from (
            select distinct q.limits from "laneway_limit_queue" q
            where instr(',' || q.limits || ',', ',' || l.name || ',')) s
        cross join "laneway_limit_wait" w cross join "laneway_message" m
        where w.limits = s.limits and w.released is null and m.id = w.message_id
        limit 10000)),
    concurrency, set_concurrency, rest_until, adapt_min, adapt_max, adapted, successes, breaker_failures,
    breaker_window, breaker_minimum, breaker_pause, opened_at, open_until, recent, round, adapt_round, breaker_round
from "laneway_shared_limit" l order by l.name

-- name: channels_behind_limits
-- $1: queue, $2: channels.
select c.name, min(l.limits) from json_each($2) j cross join "laneway_channel" c cross join "laneway_limit_lane" l
where c.queue = $1 and c.name = j.value and l.channel_id = c.id and l.waiting
group by c.name

-- name: forget_limit_lanes
-- $1: now, $2: limit. Lanes in which nothing waits, that were not used for a minute and have had no more than those
-- that wait.
delete from "laneway_limit_lane" where (limits, channel_id) in (
    select i.limits, i.channel_id from "laneway_limit_lane" i indexed by "laneway_limit_lane_idle"
    where not i.waiting and i.used < $1 - 60000000 and i.pass <= coalesce((
        select min(l.pass) from "laneway_limit_lane" l where l.limits = i.limits and l.waiting), 1e300)
    order by i.used limit $2)

-- name: forget_limit_clocks
-- $1: now, $2: limit. Of sets that nothing waits for and nothing has started behind for a minute.
delete from "laneway_limit_clock" where limits in (
    select c.limits from "laneway_limit_clock" c
    where c.at < $1 - 60000000
        and not exists (select 1 from "laneway_limit_lane" l where l.limits = c.limits)
    limit $2)

-- name: forget_released
-- $1: now, $2: limit. What is known of messages that were made due a while ago.
delete from "laneway_limit_wait" where message_id in (
    select message_id from "laneway_limit_wait" where released < $1 - 60000000 order by released limit $2)

-- name: forget_limit_queues
-- $1: limit. Where nothing waits.
delete from "laneway_limit_queue" where (queue, limits) in (
    select q.queue, q.limits from "laneway_limit_queue" q
    where not exists (
        select 1 from "laneway_limit_lane" l where l.limits = q.limits and l.queue = q.queue and l.waiting)
    limit $1)
