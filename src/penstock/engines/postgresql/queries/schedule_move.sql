-- $1..$9: the columns of Move as arrays. Only what is still the same revision at the same tick moves.
update "penstock".schedule s set
    next_at = m.next_at, look_at = m.look_at, last_at = m.last_at, fired = s.fired + m.fired, error = m.error
from unnest(
    CAST($1 AS text[]), CAST($2 AS text[]), CAST($3 AS bigint[]), CAST($4 AS timestamptz[]),
    CAST($5 AS timestamptz[]), CAST($6 AS timestamptz[]), CAST($7 AS timestamptz[]),
    CAST($8 AS bigint[]), CAST($9 AS text[])
) m(queue, name, revision, tick, next_at, look_at, last_at, fired, error)
where s.queue = m.queue and s.name = m.name and s.revision = m.revision and s.next_at = m.tick
returning s.queue, s.name
