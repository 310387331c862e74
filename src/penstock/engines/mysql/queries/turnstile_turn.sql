-- $1: n, $2: name.
update `penstock_turnstile` force index (primary) set n = $1 where name = $2
