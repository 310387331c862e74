-- The backlog of each channel [5 minutes, queue, channel]: how many messages became due and started in the slot,
-- how many were waiting and running at its end (waiting_before: at its start), and how long the oldest had been
-- waiting then. Slot borders are counted by groups of spans that cross the same ones.
with grouped as (
    select s.queue, s.channel, s.state,
        cast(ceil(s.begins / 300e6) as bigint) as first_border, cast(ceil(s.ends / 300e6) - 1 as bigint) as last_border,
        count(*) as n, min(s.begins) as oldest
    from span s
    group by s.queue, s.channel, s.state, first_border, last_border
),
crossed as (
    select g.queue, g.channel, g.state, b.border, sum(g.n) as n, min(g.oldest) as oldest
    from grouped g
    lateral view explode(case when g.last_border >= g.first_border
        then sequence(g.first_border, g.last_border) end) b as border
    group by g.queue, g.channel, g.state, b.border
),
fact as (
    select c.queue, c.channel, (c.border - 1) * 300 as at, 0L as came, 0L as started,
        case when c.state = 'waiting' then c.n else 0 end as waiting, 0L as waiting_before,
        case when c.state = 'running' then c.n else 0 end as running,
        case when c.state = 'waiting' then (c.border * 300000000 - c.oldest) / 1e6 end as oldest_s
    from crossed c
    union all
    select c.queue, c.channel, c.border * 300, 0, 0, 0, c.n, 0, null
    from crossed c
    where c.state = 'waiting'
    union all
    select s.queue, s.channel, floor(s.begins / 300e6) * 300, 1, 0, 0, 0, 0, null
    from span s
    where s.state = 'waiting'
    union all
    select s.queue, s.channel, floor(s.ends / 300e6) * 300, 0, 1, 0, 0, 0, null
    from span s
    where s.state = 'waiting' and s.started
),
summed as (
    select timestamp_seconds(f.at) as slot, f.queue, f.channel, sum(f.came) as came, sum(f.started) as started,
        sum(f.waiting) as waiting, sum(f.waiting_before) as waiting_before, sum(f.running) as running,
        max(f.oldest_s) as oldest_s
    from fact f
    group by f.at, f.queue, f.channel
)
select to_date(s.slot) as day, s.* from summed s
where array_contains(:days, to_date(s.slot))
