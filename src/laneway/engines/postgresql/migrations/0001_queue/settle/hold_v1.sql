-- hold: extend many leases without waiting for any of them.
--
-- Keeps: only the holder of the lease with this fence extends it, never to an earlier end. Waits for nobody: a
-- lease that another transaction has locked, perhaps its own holder's, is left as it is; nobody can take it from
-- its holder meanwhile. Records nothing for lost ones: their holder did not try to settle them.
-- Answers those that were not extended: 'locked', or 'lost'. No row means that all were extended.
create or replace function "laneway".hold_v1(
    p_ids bigint[], p_fences bigint[], p_length interval, p_now timestamptz default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_free bigint[];
begin
    -- Two statements: only the second one sees what was changed between the read and the lock.
    v_free := array(
        select l.message_id from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        for update skip locked);
    update lease l set until = greatest(l.until, v_now + p_length) where l.message_id = any(v_free);

    if cardinality(v_free) = cardinality(p_ids) then
        return;
    end if;
    return query
    select x.id, x.fence, case when l.message_id is null then 'lost' else 'locked' end
    from unnest(p_ids, p_fences) x(id, fence)
    left join lateral (
        select k.message_id from lease k where k.message_id = x.id and k.fence = x.fence offset 0
    ) l on true
    where (l.message_id = any(v_free)) is not true;
end
$$;
