-- $1: queue, $2: now. The next turn to come (far in the future: only parked channels), and the next
-- wake.
select
    (select turn from `penstock_channel` force index (channel_ring)
    where queue = $1 and turn > $2 order by turn limit 1),
    (select at from `penstock_wake` force index (wake_order)
    where queue = $1 and at > $2 order by at limit 1)
