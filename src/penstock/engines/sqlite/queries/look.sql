-- What a claim of these queues would find, one index entry each, and nothing is written.
-- $1: queues, $2: now. Answers: ready, blocked, when the next channel wakes.
select
    exists (
        select 1 from json_each($1) q cross join "penstock_channel" c
        where c.queue = q.value and c.turn is not null)
    or exists (
        select 1 from json_each($1) q cross join "penstock_channel" c
        where c.queue = q.value and c.wake_at <= $2) as ready,
    exists (
        select 1 from json_each($1) q cross join "penstock_channel" c
        where c.queue = q.value and c.turn is null and c.waiting > 0 and c.next_due <= $2) as blocked,
    (select min(n.at) from (
        select (
            select c.wake_at from "penstock_channel" c
            where c.queue = q.value and c.wake_at > $2 order by c.wake_at limit 1) as at
        from json_each($1) q) n) as next_at
