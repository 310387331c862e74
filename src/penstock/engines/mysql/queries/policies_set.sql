-- $1: rows. They exist and are ours: the insert only says what each of them gets.
insert into `penstock_channel` (id, queue, name, concurrency, rate, burst, backlog, weight, gated)
values $1...
on duplicate key update concurrency = values(concurrency), rate = values(rate), burst = values(burst),
    backlog = values(backlog), weight = values(weight), gated = values(gated), closing = false
