-- $1: queue, $2: channel, null for all; $3: limit. The fullest first.
select queue, channel, waiting, scheduled, leased, dead, oldest_due from `penstock_numbers`
where ($1 is null or queue = $1) and ($2 is null or channel = $2)
order by waiting desc, queue, channel limit $3
