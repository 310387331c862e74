-- The public face: what people, dashboards, reports and Spark may read. A view's columns only grow;
-- a change that would break a reader gets a new number. Times are microseconds since 1970: read one as
-- datetime(due / 1000000, 'unixepoch').

create view "penstock_message_v1" as
select m.id, c.queue, c.name as channel, m.kind, m.key, m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt, m.max_attempts, m.content_type, m.headers,
    length(m.payload) as payload_size, m.payload,
    case when l.fence is not null then 'leased'
        when m.due > (julianday('now') - 2440587.5) * 86400000000 then 'scheduled'
        else 'waiting' end as state,
    l.fence, k.worker, k.claimed_at, l.until
from "penstock_message" m
join "penstock_channel" c on c.id = m.channel_id
left join "penstock_lease" l on l.message_id = m.id
left join "penstock_claim" k on k.fence = l.fence;

create view "penstock_dead_letter_v1" as
select id, queue, channel, kind, key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, length(payload) as payload_size, payload, reason, error_type,
    error
from "penstock_dead";

create view "penstock_history_v1" as
select id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead
from "penstock_history";

create view "penstock_channel_v1" as
select queue, name as channel, concurrency, rate, burst, backlog, weight, paused, closing, created_at
from "penstock_channel";

-- The counts are kept with the channel; only what is scheduled is counted, from the first message that
-- is not due on.
create view "penstock_channel_numbers_v1" as
with known as (
    select c.queue, c.name as channel, c.waiting, c.leased, c.id,
        (select count(*) from "penstock_waiting" w
            where w.channel_id = c.id and w.priority in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
                and w.due > (julianday('now') - 2440587.5) * 86400000000) as scheduled
    from "penstock_channel" c
    where c.waiting > 0 or c.leased > 0
)
select queue, channel, sum(waiting) as waiting, sum(scheduled) as scheduled, sum(leased) as leased,
    sum(dead) as dead
from (
    select queue, channel, waiting - scheduled as waiting, scheduled, leased, 0 as dead from known
    union all
    select queue, channel, 0, 0, 0, n from "penstock_dead_count" where n <> 0
)
group by queue, channel;

create view "penstock_queue_numbers_v1" as
select queue, sum(waiting) as waiting, sum(scheduled) as scheduled, sum(leased) as leased,
    sum(dead) as dead, count(*) as channels
from "penstock_channel_numbers_v1"
group by queue;
