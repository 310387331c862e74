-- $1: rows. They exist and are ours: the insert only says what each of them gets, and the latest that the
-- arrival time of its rate may be; null, without a rate, makes it null.
insert into `penstock_channel` (id, queue, name, concurrency, rate, burst, backlog, weight, gated, tat)
values $1...
on duplicate key update concurrency = values(concurrency), rate = values(rate), burst = values(burst),
    backlog = values(backlog), weight = values(weight), gated = values(gated), closing = false,
    tat = least(tat, values(tat))
