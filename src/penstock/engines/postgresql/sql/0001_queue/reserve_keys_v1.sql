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
set enable_nestloop = off
as $$
declare
    v_undecided integer;
begin
    ids := p_ids;
    status := array_fill(null::text, array[cardinality(p_ids)]);
    for v_try in 1 .. 20 loop
        with item as materialized (
            select x.ordinal, x.id, coalesce(x.queue, p_queue[1]) as queue, x.key, x.status
            from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
        ),
        first as materialized (
            select distinct on (i.queue, i.key) i.ordinal, i.id, i.queue, i.key
            from item i where i.key is not null and i.status is null
            order by i.queue, i.key, i.ordinal
        ),
        taken as (
            insert into dedupe (queue, key, message_id)
            select f.queue, f.key, f.id from first f order by f.queue, f.key
            on conflict (queue, key) do nothing
            returning message_id
        )
        select
            array_agg(i.id order by i.ordinal),
            -- 'reserved' is ours to publish; an empty word is not decided yet.
            array_agg(
                case
                    when i.key is null or i.status is not null then i.status
                    when t.message_id is not null then 'reserved'
                    else '' end
                order by i.ordinal)
        into ids, status
        from item i left join taken t on t.message_id = i.id;

        -- A new statement: what others committed while the insert waited is visible now.
        with item as materialized (
            select x.ordinal, x.id, coalesce(x.queue, p_queue[1]) as queue, x.key, x.status
            from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
        )
        select
            array_agg(coalesce(d.message_id, i.id) order by i.ordinal),
            array_agg(case when i.status = '' and d.message_id is not null then 'existing' else i.status end
                      order by i.ordinal),
            count(*) filter (where i.status = '' and d.message_id is null)
        into ids, status, v_undecided
        from item i
        left join dedupe d
            on i.status = '' and d.queue = i.queue and d.key = i.key
            and (d.expires_at is null or d.expires_at > p_now);

        exit when v_undecided = 0;
        -- Held by a key whose time has passed, or gone since: clear the way and try again.
        delete from dedupe d
        using unnest(p_queue, p_key) with ordinality x(queue, key, ordinal)
        where d.queue = coalesce(x.queue, p_queue[1]) and d.key = x.key and d.expires_at <= p_now;
        status := array(
            select case when s.status = '' then null else s.status end
            from unnest(status) with ordinality s(status, ordinal) order by s.ordinal);
    end loop;
    if v_undecided > 0 then
        raise exception 'penstock: a publish key changed hands too often to be decided'
            using errcode = 'serialization_failure', hint = 'Publish again.';
    end if;
    status := array(
        select nullif(s.status, 'reserved') from unnest(status) with ordinality s(status, ordinal)
        order by s.ordinal);
end
$$;
