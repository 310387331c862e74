-- Part of publish: take the batch's keys, or learn whose they are.
--
-- Keeps: of two publishes with one live key, exactly one publishes; the other answers the same id.
-- A key that is taken is read, never locked, so an open producer that met it blocks no completion.
create or replace function "penstock".reserve_keys_v1(
    p_ids bigint[], p_queue text[], p_key text[], p_now timestamptz,
    out ids bigint[], out status text[]
)
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_taken bigint[];
    v_undecided integer;
begin
    ids := p_ids;
    status := array_fill(null::text, array[cardinality(p_ids)]);
    for v_try in 1 .. 20 loop
        -- Ours, if the insert says so. It waits for another publisher of the same key to end.
        with first as materialized (
            select distinct on (i.queue, i.key) i.id, i.queue, i.key
            from (
                select x.ordinal, x.id, coalesce(x.queue, p_queue[1]) as queue, x.key
                from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
                where x.key is not null and x.status is null
            ) i
            order by i.queue, i.key, i.ordinal
        ),
        taken as (
            insert into dedupe (queue, key, message_id)
            select f.queue, f.key, f.id from first f order by f.queue, f.key
            on conflict (queue, key) do nothing
            returning message_id
        )
        select array_agg(t.message_id) into v_taken from taken t;

        -- A new statement: what others committed while the insert waited is visible now.
        select
            array_agg(coalesce(d.message_id, x.id) order by x.ordinal),
            array_agg(
                case when x.key is null or x.status is not null then x.status
                    when x.id = any(v_taken) then 'reserved'
                    when d.message_id is not null then 'existing' end
                order by x.ordinal),
            count(*) filter (
                where x.key is not null and x.status is null and d.message_id is null
                    and (x.id = any(v_taken)) is not true)
        into ids, status, v_undecided
        from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
        left join lateral (
            select k.message_id from dedupe k
            where x.status is null and k.queue = coalesce(x.queue, p_queue[1]) and k.key = x.key
                and (k.expires_at is null or k.expires_at > p_now)
            offset 0
        ) d on true;

        exit when v_undecided = 0;
        -- Held by a key whose time has passed, or gone since: clear the way and try again.
        delete from dedupe d
        using (select distinct coalesce(x.queue, p_queue[1]) as queue, x.key from unnest(p_queue, p_key) x(queue, key)) x
        where d.queue = x.queue and d.key = x.key and d.expires_at <= p_now;
    end loop;
    if v_undecided > 0 then
        raise exception 'penstock: a publish key changed hands too often to be decided'
            using errcode = 'serialization_failure', hint = 'Publish again.';
    end if;
    status := array(
        select nullif(s.status, 'reserved') from unnest(status) with ordinality s(status, ordinal) order by s.ordinal);
end
$$;
