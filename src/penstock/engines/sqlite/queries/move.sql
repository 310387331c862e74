-- The one place where a channel's counts and schedule change outside of a claim.
-- $1: channel, $2: messages more, $3: leases more, $4: bands, $5: due of the earliest of them (or null),
-- $6: the turn that it may get, $7: now.
update "penstock_channel" set
    waiting = x.waiting, leased = x.leased, bands = x.bands, next_due = x.next_due,
    turn = case when x.ready_at <= $7 then coalesce("penstock_channel".turn, $6) end,
    credit = case when x.ready_at <= $7 then "penstock_channel".credit else 0 end,
    wake_at = case when x.ready_at > $7 then x.ready_at end
from (
    select y.*, case
        when y.paused or y.leased >= y.concurrency or y.waiting <= 0 then null
        else max(y.next_due, coalesce(y.open_at, y.next_due)) end as ready_at
    from (
        select c.id, c.paused, c.concurrency, c.open_at, c.waiting + $2 as waiting,
            c.leased + $3 as leased, c.bands | $4 as bands,
            case when c.waiting + $2 > 0 then
                min(coalesce(c.next_due, $5), coalesce($5, c.next_due)) end as next_due
        from "penstock_channel" c where c.id = $1
    ) y
) x
where "penstock_channel".id = $1
