-- $1: rows. They exist and are ours: the insert only says what each of them gets.
insert into `penstock_channel` (id, queue, name, turn, n, leased, tat, credit, skips, oldest, places)
values $1...
on duplicate key update turn = values(turn), n = values(n), leased = values(leased), tat = values(tat),
    credit = values(credit), skips = values(skips), oldest = values(oldest), places = values(places)
