-- $1: topic, $2: queue.
select 1 from `penstock_subscription` where topic = $1 and queue = $2 for update
