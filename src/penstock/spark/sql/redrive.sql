-- What died after the run began is not of this run: a task that is tried again takes nothing twice.
select count(*)
from {schema}.redrive_v1(
    array(select d.id from {schema}.dead_letter_v1 d where d.id = any({ids}::bigint[]) and d.died_at < {until}),
    {max_attempts}::integer, {delay}::interval)
