-- The public views, for people, dashboards, reports and Spark. Columns are only added; a change that
-- would break a reader gets a new number.

create view "laneway".message_v1 as
select m.id, m.queue, m.channel, m.kind, substr(m.key, 17) as key, m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
    m.attempt, m.max_attempts, m.content_type, m.headers, octet_length(m.payload)::bigint as payload_size, m.payload,
    case when l.message_id is not null then 'leased' when m.due > clock_timestamp() then 'scheduled' else 'waiting' end as state,
    l.fence, l.worker, l.claimed_at, l.until, m.state as saved_state
from "laneway".message m left join "laneway".lease l on l.message_id = m.id
where (m.part is null or m.part not in (select p.id from "laneway".staged_part p));

create view "laneway".dead_letter_v1 as
select d.id, d.queue, d.channel, d.kind, substr(d.key, 17) as key, d.priority, d.died_at, d.published_at, d.first_published_at,
    d.attempt, d.max_attempts, d.content_type, d.headers, octet_length(d.payload)::bigint as payload_size, d.payload,
    d.reason, d.error_type, d.error, d.traceback, d.state as saved_state
from "laneway".dead d;

create view "laneway".history_v1 as
select h.id, h.xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error, h.first_published_at, h.published_at, h.due, h.claimed_at, h.ended_at,
    h.payload_size, h.terminal, h.dead, h.started_at
from "laneway".history h;

-- Policies. A channel has a row once it was claimed from or got a policy.
create view "laneway".channel_v1 as
select c.queue, c.name as channel, c.concurrency, c.rate, c.burst, c.backlog, c.weight,
    c.paused and coalesce(c.paused_until > clock_timestamp(), true) as paused, c.closing, c.created_at,
    c.paused_until, c.throttled
from "laneway".channel c;

-- Statistics by channel, from tokens and wakes: these carry how many messages they stand for, so this
-- reads one row per channel with work and per publish not yet claimed from, never messages.
create view "laneway".channel_stats_v1 as
with part as (
    select t.queue, c.name as channel, t.n as waiting, 0::bigint as scheduled, 0::bigint as leased, 0::bigint as dead,
        (select min(d) from unnest(t.due) d) as oldest
    from "laneway".token t join "laneway".channel c on c.id = t.channel_id
    union all
    select w.queue, w.channel, case when w.due <= clock_timestamp() then w.n else 0 end,
        case when w.due > clock_timestamp() then w.n else 0 end, 0, 0,
        case when w.n > 0 and w.due <= clock_timestamp() then w.due end
    from "laneway".wake w
    union all
    select c.queue, c.name, 0, 0, l.n, 0, null
    from (select k.channel_id, count(*) as n from "laneway".lease k group by k.channel_id) l
    join "laneway".channel c on c.id = l.channel_id
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from "laneway".dead_count d
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from "laneway".dead_total d
)
select p.queue, p.channel, greatest(sum(p.waiting), 0)::bigint as waiting, greatest(sum(p.scheduled), 0)::bigint as scheduled,
    sum(p.leased)::bigint as leased, sum(p.dead)::bigint as dead,
    case when sum(p.waiting) > 0 then min(p.oldest) end as oldest_due
from part p
group by p.queue, p.channel
having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0;

create view "laneway".queue_stats_v1 as
select c.queue, sum(c.waiting)::bigint as waiting, sum(c.scheduled)::bigint as scheduled, sum(c.leased)::bigint as leased,
    sum(c.dead)::bigint as dead, count(*) as channels, min(c.oldest_due) as oldest_due
from "laneway".channel_stats_v1 c
group by c.queue;
