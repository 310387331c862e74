-- Who waited or ran at each five-minute border.
select p.queue, p.channel, p.state, b.at as border, count(*) as n, min(p.begins) as oldest
from period p
cross join lateral generate_series(
    date_bin('5 minutes', p.begins + interval '299.999999 seconds', timestamptz 'epoch'),
    p.ends - interval '1 microsecond', interval '5 minutes') b (at)
group by p.queue, p.channel, p.state, b.at
