-- The one place where a channel's counts and schedule change outside of a claim.
-- $1: rows of channel id, messages more, leases more, bands, due of the earliest of them (or null);
-- $2: the first turn that may be given, $3: now.
update "penstock_channel" set
    waiting = x.waiting, leased = x.leased, bands = x.bands, next_due = x.next_due,
    turn = case when x.ready_at <= $3 then coalesce("penstock_channel".turn, $2 + x.place) end,
    credit = case when x.ready_at <= $3 then "penstock_channel".credit else 0 end,
    wake_at = case when x.ready_at > $3 then x.ready_at end
from (
    select y.*, case
        when y.paused or y.leased >= y.concurrency or y.waiting <= 0 then null
        else max(y.next_due, coalesce(y.open_at, y.next_due)) end as ready_at
    from (
        select c.id, c.paused, c.concurrency, c.open_at, j.key as place,
            c.waiting + json_extract(j.value, '$[1]') as waiting,
            c.leased + json_extract(j.value, '$[2]') as leased,
            c.bands | json_extract(j.value, '$[3]') as bands,
            case when c.waiting + json_extract(j.value, '$[1]') > 0 then
                min(coalesce(c.next_due, json_extract(j.value, '$[4]')),
                    coalesce(json_extract(j.value, '$[4]'), c.next_due)) end as next_due
        from json_each($1) j cross join "penstock_channel" c
        where c.id = json_extract(j.value, '$[0]')
    ) y
) x
where "penstock_channel".id = x.id
