-- $1: channel, $2..$6: the policy, $7 and $8: tat and open_at under it. A channel that was being
-- removed is not any more.
update "penstock_channel" set concurrency = $2, rate = $3, burst = $4, backlog = $5, weight = $6,
    tat = $7, open_at = $8, closing = 0
where id = $1
