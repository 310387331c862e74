-- The due time of the oldest message of a queue that waits and is due, as far as the first hundred turns of its
-- channels and its first wakes tell: a fixed number of rows.
create or replace function "laneway".oldest_due_v1(p_queue text, p_now timestamptz)
returns timestamptz
language sql stable
set enable_seqscan = off
as $$
    select min(x.due) from (
        (select w.due from "laneway".wake w where w.queue = p_queue and w.at <= p_now and w.n > 0 order by w.at limit 10)
        union all
        (select d.due from (
            (select t.due from "laneway".token t where t.queue = p_queue and t.turn is not null order by t.turn limit 100)
            union all
            (select t.due from "laneway".token t where t.queue = p_queue and t.turn is null and t.n > 0 limit 100)
        ) t cross join unnest(t.due) d(due))
    ) x
    where isfinite(x.due)
$$;
