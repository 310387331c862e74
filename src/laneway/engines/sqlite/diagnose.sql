-- name: diagnose_file
-- How durable commits on this connection are, and how much of the file is unused.
select sqlite_version(), (select journal_mode from pragma_journal_mode),
    (select synchronous from pragma_synchronous), (select page_size from pragma_page_size),
    (select page_count from pragma_page_count), (select freelist_count from pragma_freelist_count)

-- name: diagnose_leases
-- $1: counts leases that expired before this time: upkeep should have ended them within seconds.
select count(*), min(until) from (
    select l.until from "laneway_claim" k cross join "laneway_lease" l
    where k.until < $1 and l.fence = k.fence and l.until < $1 limit 1000)

-- name: waiting_work
-- $1: now. Queues with work that could start: since when, when a message of theirs was last claimed, and
-- which kinds wait at their heads. Looks at 200 queues, and at 100 messages of 20 channels each. Paused queues
-- and kinds are left out.
with recursive queue (name) as (
    select (select min(queue) from "laneway_channel")
    union all
    select (select min(c.queue) from "laneway_channel" c where c.queue > q.name)
    from queue q where q.name is not null
    limit 200
),
head as (
    select q.name as queue, c.id as channel_id
    from queue q join "laneway_channel" c on c.id in (
        select r.id from "laneway_channel" r where r.queue = q.name and r.turn is not null
        order by r.turn limit 20)
),
alarm as (
    select q.name as queue, c.id as channel_id
    from queue q join "laneway_channel" c on c.id in (
        select r.id from "laneway_channel" r where r.queue = q.name and r.wake_at <= $1 + 60000000
        order by r.wake_at limit 20)
)
select q.name,
    (select min((
            with recursive p (value) as (
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = h.channel_id)
                union all
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = h.channel_id and x.priority > p.value)
                from p where p.value is not null)
            select min((select w.due from "laneway_waiting" w
                where w.channel_id = h.channel_id and w.priority = p.value order by w.due limit 1)) from p))
        from head h where h.queue = q.name),
    (select max(k.claimed_at) from (select fence, claimed_at from "laneway_claim" order by fence desc limit 100) k
        where exists (select 1 from "laneway_lease" l join "laneway_channel" c on c.id = l.channel_id
            where l.fence = k.fence and c.queue = q.name)),
    (select json_group_array(distinct waits.kind) from (select m.kind from (select * from head union select * from alarm) h
        join "laneway_message" m on m.id in (
            select w.message_id from "laneway_waiting" w where w.channel_id = h.channel_id
            order by w.priority, w.due, w.message_id limit 5)
        where h.queue = q.name and m.published_at < $1 - 60000000
        union all
        -- Of a queue that is claimed by kind also those that wait behind others, as far as the oldest of each tells.
        select k.kind from (
            with recursive kind (kind) as (
                select (select min(l.kind) from "laneway_lane" l where l.queue = q.name and l.turn is not null)
                union all
                select (select min(l.kind) from "laneway_lane" l
                    where l.queue = q.name and l.turn is not null and l.kind > k.kind)
                from kind k where k.kind is not null limit 100)
            select kind from kind where kind is not null) k
        where exists (
            select 1 from "laneway_lane" l cross join "laneway_kind_waiting" w cross join "laneway_message" m
            where l.queue = q.name and l.kind = k.kind and l.turn is not null and w.channel_id = l.channel_id
                and w.kind = l.kind and w.due <= $1 and m.id = w.message_id and m.published_at < $1 - 60000000)) waits
    where not exists (select 1 from "laneway_pause" p where p.queue = q.name and p.kind = waits.kind
        and (p.until is null or p.until > $1)))
from queue q
where q.name is not null
    and not exists (select 1 from "laneway_pause" p where p.queue = q.name and p.kind is null
        and (p.until is null or p.until > $1))
