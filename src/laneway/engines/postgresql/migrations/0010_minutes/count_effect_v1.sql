-- Part of counting: what a history row says about the numbers of messages that have not ended and of dead letters.
--
-- completed, cancelled and lapsed end a message; a row that is marked dead (of an attempt that failed, was
-- retried or expired) makes a dead letter of it; redriven brings one back; discarded ends a dead letter. Deferred,
-- given back, retried and expired ones wait again; stale changes nothing.
create or replace function "laneway".count_effect_v1(p_outcome text, p_dead boolean)
returns table (live integer, dead integer)
language sql immutable
as $$
    select
        case when p_dead or p_outcome in ('completed', 'cancelled', 'lapsed') then -1
            when p_outcome = 'redriven' then 1 else 0 end,
        case when p_dead then 1 when p_outcome in ('redriven', 'discarded') then -1 else 0 end
$$;
