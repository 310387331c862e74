-- Part of publish: reserve the batch's keys, or find the messages that have them.
--
-- Keeps: of two publishes with the same key, exactly one publishes; the other answers the same id.
-- A key that is in use is read, never locked, so an open publish that found it blocks no completion.
create or replace function "laneway".reserve_keys_v1(
    p_ids bigint[], p_queue text[], p_key text[], p_now timestamptz,
    out ids bigint[], out status text[]
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_undecided integer;
    v_past boolean;
    v_taken integer;
begin
    ids := p_ids;
    status := array_fill(null::text, array[cardinality(p_ids)]);
    for v_try in 1 .. 20 loop
        -- Read before inserting: a key in use is found at once, also while its message's end is uncommitted.
        -- Each iteration is a new statement and sees what others committed while the insert waited.
        select
            array_agg(coalesce(d.message_id, x.id) order by x.ordinal),
            array_agg(
                case when x.key is null or x.status is not null then x.status
                    when d.message_id = x.id then 'reserved'
                    when d.message_id is not null then 'existing' end
                order by x.ordinal),
            count(*) filter (where x.key is not null and x.status is null and d.message_id is null),
            coalesce(bool_or(d.past), false)
        into ids, status, v_undecided, v_past
        from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
        left join lateral (
            select case when k.expires_at <= p_now then null else k.message_id end as message_id,
                k.expires_at <= p_now as past
            from dedupe k
            where x.status is null and k.queue = coalesce(x.queue, p_queue[1]) and k.key = x.key
            offset 0
        ) d on true;
        exit when v_undecided = 0;

        -- A key that has expired is in the way: delete it, in order.
        if v_past then
            delete from dedupe d where (d.queue, d.key) in (
                select k.queue, k.key
                from (
                    select distinct coalesce(x.queue, p_queue[1]) as queue, x.key
                    from unnest(p_queue, p_key, status) x(queue, key, status) where x.status is null
                ) x join dedupe k on k.queue = x.queue and k.key = x.key
                where k.expires_at <= p_now
                order by k.queue, k.key for update of k);
        end if;
        -- Ours if the insert succeeds. It waits for another publisher of the same key to end.
        with first as materialized (
            select distinct on (i.queue, i.key) i.id, i.queue, i.key
            from (
                select x.ordinal, x.id, coalesce(x.queue, p_queue[1]) as queue, x.key
                from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
                where x.key is not null and x.status is null
            ) i
            order by i.queue, i.key, i.ordinal
        )
        insert into dedupe (queue, key, message_id)
        select f.queue, f.key, f.id from first f order by f.queue, f.key
        on conflict (queue, key) do nothing;
        get diagnostics v_taken = row_count;
        v_undecided := v_undecided - v_taken;
        exit when v_undecided = 0;
    end loop;
    if v_undecided > 0 then
        raise exception 'laneway: a publish key changed hands too often to be decided'
            using errcode = 'serialization_failure', hint = 'Publish again.';
    end if;
    status := array(
        select nullif(s.status, 'reserved') from unnest(status) with ordinality s(status, ordinal) order by s.ordinal);
end
$$;
