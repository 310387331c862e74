-- $1: queue, $2: now, $3: from which turn on, $4: from which wake on it was looked. The next turn to
-- come (far in the future: only parked channels), the next wake, and whether anything lies to the left
-- of the look.
select
    (select turn from `penstock_channel` force index (channel_ring)
    where queue = $1 and turn > $2 order by turn limit 1),
    (select at from `penstock_wake` force index (wake_order)
    where queue = $1 and at > $2 order by at limit 1),
    exists (select 1 from `penstock_channel` force index (channel_ring) where queue = $1 and turn < $3)
    or exists (select 1 from `penstock_wake` force index (wake_order) where queue = $1 and at < $4)
