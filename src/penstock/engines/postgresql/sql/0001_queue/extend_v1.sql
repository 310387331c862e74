-- extend: hold the lease until now + the given length; never shortens it.
--
-- Keeps: as complete. Locks leases in id order.
create or replace function "penstock".extend_v1(
    p_ids bigint[], p_fences bigint[], p_lengths interval[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text, until timestamptz)
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_status text[];
    v_until timestamptz[];
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, coalesce(x.length, p_lengths[1]) as length
        from unnest(p_ids, p_fences, p_lengths) x(id, fence, length) order by x.id, x.fence
    ),
    held as (
        update lease l set until = greatest(l.until, v_now + i.length)
        from item i where l.message_id = i.id and l.fence = i.fence
        returning l.message_id, l.fence, l.until
    )
    select
        array_agg(i.id order by i.id, i.fence), array_agg(i.fence order by i.id, i.fence),
        array_agg(case when h.message_id is null then 'lost' else 'extended' end order by i.id, i.fence),
        array_agg(h.until order by i.id, i.fence)
    into p_ids, p_fences, v_status, v_until
    from item i left join held h on h.message_id = i.id and h.fence = i.fence;

    perform note_stale_v1(p_ids, p_fences, v_status, 'extend', v_now);
    return query select * from unnest(p_ids, p_fences, v_status, v_until);
end
$$;
