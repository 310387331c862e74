-- The public views: what people, dashboards, reports and Spark may read. Columns are only added;
-- a change that would break readers gets a new version number.
-- Times are microseconds since 1970: datetime(due / 1000000, 'unixepoch') is readable.

create view "laneway_message_v1" as
select m.id, c.queue, c.name as channel, m.kind, substr(m.key, 17) as key, m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt, m.max_attempts, m.content_type, m.headers,
    length(m.payload) as payload_size, m.payload,
    case when l.fence is not null then 'leased'
        when m.due > (julianday('now') - 2440587.5) * 86400000000 then 'scheduled'
        else 'waiting' end as state,
    l.fence, k.worker, k.claimed_at, l.until
from "laneway_message" m
join "laneway_channel" c on c.id = m.channel_id
left join "laneway_lease" l on l.message_id = m.id
left join "laneway_claim" k on k.fence = l.fence;

create view "laneway_dead_letter_v1" as
select id, queue, channel, kind, substr(key, 17) as key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, length(payload) as payload_size, payload, reason, error_type,
    error, traceback
from "laneway_dead";

create view "laneway_history_v1" as
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead, started_at
from "laneway_history";

create view "laneway_channel_v1" as
select queue, name as channel, concurrency, rate, burst, backlog, weight, paused, closing, created_at
from "laneway_channel";

-- The channel keeps its counts; only scheduled messages are counted here, from the first one that is
-- not due yet.
create view "laneway_channel_stats_v1" as
with known as (
    select c.queue, c.name as channel, c.waiting, c.leased, c.id,
        (
            with recursive p (value) as (
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id)
                union all
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id and x.priority > p.value)
                from p where p.value is not null)
            select count(*) from p cross join "laneway_waiting" w
            where w.channel_id = c.id and w.priority = p.value
                and w.due > (julianday('now') - 2440587.5) * 86400000000) as scheduled
    from "laneway_channel" c
    where c.waiting > 0 or c.leased > 0
)
select queue, channel, sum(waiting) as waiting, sum(scheduled) as scheduled, sum(leased) as leased,
    sum(dead) as dead
from (
    select queue, channel, waiting - scheduled as waiting, scheduled, leased, 0 as dead from known
    union all
    select queue, channel, 0, 0, 0, n from "laneway_dead_count" where n <> 0
)
group by queue, channel;

create view "laneway_queue_stats_v1" as
select queue, sum(waiting) as waiting, sum(scheduled) as scheduled, sum(leased) as leased,
    sum(dead) as dead, count(*) as channels
from "laneway_channel_stats_v1"
group by queue;

create view "laneway_subscription_v1" as
select topic, queue, channel, kind from "laneway_subscription";
