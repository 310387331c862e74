-- Exact ones, by nearest rank.
with long as (
    select f.day, f.hour, f.queue, f.channel, f.kind, m.measure, m.us / 1000000.0 as s
    from fact f cross join lateral (values ('wait', f.waited), ('run', f.ran)) m (measure, us)
    where f.begun
),
grouped as (
    select l.day, 'hour' as grain, l.hour, l.queue, null as channel, null as kind, l.measure, array_agg(l.s order by l.s) as all_s
    from long l group by l.day, l.hour, l.queue, l.measure
    union all
    select l.day, 'day', null, l.queue, null, null, l.measure, array_agg(l.s order by l.s) from long l group by l.day, l.queue, l.measure
    union all
    select l.day, 'channel', null, l.queue, l.channel, null, l.measure, array_agg(l.s order by l.s)
    from long l group by l.day, l.queue, l.channel, l.measure
    union all
    select l.day, 'kind', null, l.queue, null, l.kind, l.measure, array_agg(l.s order by l.s)
    from long l group by l.day, l.queue, l.kind, l.measure
)
select g.day, g.grain, g.hour, g.queue, g.channel, g.kind, g.measure, cardinality(g.all_s) as n,
    g.all_s[ceil(0.5 * cardinality(g.all_s))]::double precision as p50,
    g.all_s[ceil(0.95 * cardinality(g.all_s))]::double precision as p95,
    g.all_s[ceil(0.99 * cardinality(g.all_s))]::double precision as p99
from grouped g
