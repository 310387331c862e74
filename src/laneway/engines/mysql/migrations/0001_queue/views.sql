-- The public views, for people, dashboards, reports and Spark. Names are text, times are UTC.
-- Columns are only ever added to a view; a change that would break readers gets a new number.

create or replace view `laneway_message_v1` as
select m.id, convert(m.queue using utf8mb4) collate utf8mb4_bin as queue, convert(m.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(m.kind using utf8mb4) collate utf8mb4_bin as kind, convert(substr(m.`key`, 17) using utf8mb4) collate utf8mb4_bin as `key`, m.priority,
    timestampadd(microsecond, m.due, timestamp '1970-01-01 00:00:00') as due,
    timestampadd(microsecond, m.published_at, timestamp '1970-01-01 00:00:00') as published_at,
    timestampadd(microsecond, m.first_published_at, timestamp '1970-01-01 00:00:00') as first_published_at,
    timestampadd(microsecond, m.expires_at, timestamp '1970-01-01 00:00:00') as expires_at,
    m.attempt, m.max_attempts, convert(m.content_type using utf8mb4) collate utf8mb4_bin as content_type,
    convert(m.headers using utf8mb4) collate utf8mb4_bin as headers, octet_length(m.payload) as payload_size, m.payload,
    case when l.message_id is not null then 'leased'
        when m.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then 'scheduled'
        else 'waiting' end as state,
    l.fence, convert(l.worker using utf8mb4) collate utf8mb4_bin as worker,
    timestampadd(microsecond, l.claimed_at, timestamp '1970-01-01 00:00:00') as claimed_at,
    timestampadd(microsecond, l.until, timestamp '1970-01-01 00:00:00') as until
from `laneway_message` m left join `laneway_lease` l on l.message_id = m.id;

create or replace view `laneway_dead_letter_v1` as
select d.id, convert(d.queue using utf8mb4) collate utf8mb4_bin as queue, convert(d.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(d.kind using utf8mb4) collate utf8mb4_bin as kind, convert(substr(d.`key`, 17) using utf8mb4) collate utf8mb4_bin as `key`, d.priority,
    timestampadd(microsecond, d.died_at, timestamp '1970-01-01 00:00:00') as died_at,
    timestampadd(microsecond, d.published_at, timestamp '1970-01-01 00:00:00') as published_at,
    timestampadd(microsecond, d.first_published_at, timestamp '1970-01-01 00:00:00') as first_published_at,
    d.attempt, d.max_attempts, convert(d.content_type using utf8mb4) collate utf8mb4_bin as content_type,
    convert(d.headers using utf8mb4) collate utf8mb4_bin as headers, octet_length(d.payload) as payload_size, d.payload,
    convert(d.reason using utf8mb4) collate utf8mb4_bin as reason, convert(d.error_type using utf8mb4) collate utf8mb4_bin as error_type,
    convert(d.error using utf8mb4) collate utf8mb4_bin as error,
    convert(d.traceback using utf8mb4) collate utf8mb4_bin as traceback
from `laneway_dead` d;

create or replace view `laneway_history_v1` as
select h.id, h.settled, h.message_id, convert(h.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(h.channel using utf8mb4) collate utf8mb4_bin as channel, convert(h.kind using utf8mb4) collate utf8mb4_bin as kind, h.priority,
    h.attempt, h.fence, convert(h.worker using utf8mb4) collate utf8mb4_bin as worker,
    convert(h.outcome using utf8mb4) collate utf8mb4_bin as outcome, convert(h.reason using utf8mb4) collate utf8mb4_bin as reason,
    convert(h.error_type using utf8mb4) collate utf8mb4_bin as error_type, convert(h.error using utf8mb4) collate utf8mb4_bin as error,
    timestampadd(microsecond, h.first_published_at, timestamp '1970-01-01 00:00:00') as first_published_at,
    timestampadd(microsecond, h.published_at, timestamp '1970-01-01 00:00:00') as published_at,
    timestampadd(microsecond, h.due, timestamp '1970-01-01 00:00:00') as due,
    timestampadd(microsecond, h.claimed_at, timestamp '1970-01-01 00:00:00') as claimed_at,
    timestampadd(microsecond, h.ended_at, timestamp '1970-01-01 00:00:00') as ended_at,
    h.payload_size, h.terminal, h.dead,
    timestampadd(microsecond, h.started_at, timestamp '1970-01-01 00:00:00') as started_at
from `laneway_history` h;

-- Policies. A channel has a row once it was claimed from or was given a policy.
create or replace view `laneway_channel_v1` as
select convert(c.queue using utf8mb4) collate utf8mb4_bin as queue, convert(c.name using utf8mb4) collate utf8mb4_bin as channel,
    c.concurrency, c.rate, c.burst, c.backlog, c.weight, c.paused, c.closing,
    timestampadd(microsecond, c.created_at, timestamp '1970-01-01 00:00:00') as created_at
from `laneway_channel` c;

-- Statistics by channel. Channel rows and wakes hold how many messages they stand for, so this reads
-- one row per channel and per unread wake, never messages. Private, and names are bytes: as text,
-- names that differ only in trailing spaces would be equal.
create or replace view `laneway_stats` as
select p.queue, p.channel, greatest(sum(p.waiting), 0) as waiting, greatest(sum(p.scheduled), 0) as scheduled,
    sum(p.leased) as leased, sum(p.dead) as dead, case when sum(p.waiting) > 0 then min(p.oldest) end as oldest_due
from (
    select c.queue, c.name as channel, c.n as waiting, 0 as scheduled, 0 as leased, 0 as dead, c.oldest
    from `laneway_channel` c where c.n <> 0
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_wake` w
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_kind_wake` w
    union all
    select c.queue, c.name, 0, 0, l.n, 0, null
    from (select k.channel_id, count(*) as n from `laneway_lease` k group by k.channel_id) l
    join `laneway_channel` c on c.id = l.channel_id
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_count` d
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_sum` d
) p
group by p.queue, p.channel
having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0;

create or replace view `laneway_channel_stats_v1` as
select convert(n.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(n.channel using utf8mb4) collate utf8mb4_bin as channel,
    n.waiting, n.scheduled, n.leased, n.dead,
    timestampadd(microsecond, n.oldest_due, timestamp '1970-01-01 00:00:00') as oldest_due
from `laneway_stats` n;

create or replace view `laneway_queue_stats_v1` as
select convert(q.queue using utf8mb4) collate utf8mb4_bin as queue,
    q.waiting, q.scheduled, q.leased, q.dead, q.channels,
    timestampadd(microsecond, q.oldest_due, timestamp '1970-01-01 00:00:00') as oldest_due
from (
    select n.queue, sum(n.waiting) as waiting, sum(n.scheduled) as scheduled, sum(n.leased) as leased,
        sum(n.dead) as dead, count(*) as channels, min(n.oldest_due) as oldest_due
    from `laneway_stats` n group by n.queue
) q;

create or replace view `laneway_subscription_v1` as
select convert(s.topic using utf8mb4) collate utf8mb4_bin as topic,
    convert(s.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(s.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(s.kind using utf8mb4) collate utf8mb4_bin as kind
from `laneway_subscription` s;
