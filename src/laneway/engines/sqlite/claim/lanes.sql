-- name: add_kind_waiting
-- $1: message ids. Those of queues that are claimed by kind are also found by their kinds.
insert into "laneway_kind_waiting" (channel_id, kind, priority, due, message_id, expires_at)
select m.channel_id, m.kind, m.priority, m.due, m.id, m.expires_at
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_kind_queue" q
where m.id = j.value and c.id = m.channel_id and q.queue = c.queue

-- name: add_to_lanes
-- $1: message ids that wait again, or for the first time.
insert into "laneway_lane" (channel_id, kind, queue, waiting, bands, next_due)
select m.channel_id, m.kind, c.queue, count(*), sum(distinct 1 << m.priority), min(m.due)
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_kind_queue" q
where m.id = j.value and c.id = m.channel_id and q.queue = c.queue and q.ready
group by m.channel_id, m.kind
on conflict (channel_id, kind) do update set waiting = waiting + excluded.waiting,
    bands = bands | excluded.bands, next_due = min(coalesce(next_due, excluded.next_due), excluded.next_due)

-- name: take_from_lanes
-- $1: ids of messages that still exist and wait no more.
update "laneway_lane" set waiting = waiting - x.n
from (
    select k.channel_id, k.kind, count(*) as n
    from json_each($1) j cross join "laneway_message" m cross join "laneway_kind_waiting" k
    where m.id = j.value and k.channel_id = m.channel_id and k.kind = m.kind and k.priority = m.priority
        and k.due = m.due and k.message_id = m.id
    group by k.channel_id, k.kind
) x
where "laneway_lane".channel_id = x.channel_id and "laneway_lane".kind = x.kind

-- name: delete_kind_waiting
-- $1: ids of messages that still exist and wait no more.
delete from "laneway_kind_waiting" where (channel_id, kind, priority, due, message_id) in (
    select m.channel_id, m.kind, m.priority, m.due, m.id
    from json_each($1) j cross join "laneway_message" m where m.id = j.value)

-- name: schedule_lanes
-- $1: channel, $2: the turn to give to lanes that are ready, $3: now. As update_channel_counts does it for the
-- channel; writes only what changes. Lanes in which nothing waits are deleted before.
update "laneway_lane" set
    turn = case when x.at <= $3 then coalesce(turn, $2) end,
    wake_at = case when x.at > $3 then x.at end,
    credit = case when x.at <= $3 and turn is not null then credit else 0 end
from (
    select l.kind, case
        when c.paused and c.paused_until is null or coalesce(c.leased >= c.concurrency, 0) then null
        else max(coalesce(c.open_at, $3), coalesce(c.paused_until, $3), l.next_due) end as at
    from "laneway_channel" c cross join "laneway_lane" l where c.id = $1 and l.channel_id = c.id
) x
where "laneway_lane".channel_id = $1 and "laneway_lane".kind = x.kind and (
    (turn is null) = coalesce(x.at <= $3, 0) or wake_at is not case when x.at > $3 then x.at end)

-- name: delete_empty_lanes
-- $1: channel.
delete from "laneway_lane" where channel_id = $1 and waiting = 0
