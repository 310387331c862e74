-- $1: name. No row: another session is in it.
select n from `penstock_turnstile` where name = $1 for update skip locked
