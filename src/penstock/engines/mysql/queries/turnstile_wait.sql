-- $1: name.
select n from `penstock_turnstile` where name = $1 for update
