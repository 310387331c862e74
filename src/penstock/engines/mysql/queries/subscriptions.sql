-- $1: topic, null for all.
select topic, queue, channel, kind from `penstock_subscription`
where $1 is null or topic = $1 order by topic, queue
