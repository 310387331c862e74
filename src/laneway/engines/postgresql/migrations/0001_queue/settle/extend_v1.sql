-- extend: hold the lease until now + the given length; never shortens it.
--
-- Keeps: only the holder of the lease with this fence extends it. Locks leases in id order.
-- p_lengths: one a message, or a single one for all.
-- Answers a row a message: 'extended' with the lease's end, or 'lost'.
create or replace function "laneway".extend_v1(
    p_ids bigint[], p_fences bigint[], p_lengths interval[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text, until timestamptz)
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
    v_ids bigint[];
    v_fences bigint[];
    v_until timestamptz[];
begin
    with held as (
        update lease l set until = greatest(l.until, v_now + (
            select coalesce(x.length, p_lengths[1]) from unnest(p_ids, p_lengths) x(id, length) where x.id = l.message_id limit 1))
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.until
    )
    select array_agg(h.message_id), array_agg(h.fence), array_agg(h.until) into v_ids, v_fences, v_until from held h;

    return query select x.id, x.fence, 'extended', x.until from unnest(v_ids, v_fences, v_until) x(id, fence, until);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select l.id, l.fence, l.status, null::timestamptz
        from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'extend', v_now) l;
    end if;
end
$$;
