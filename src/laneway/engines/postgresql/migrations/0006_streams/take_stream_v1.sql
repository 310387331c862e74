-- take: a task takes over messages of a stream's batches, to settle each one itself. From now on the
-- stream neither extends nor completes them.
--
-- Keeps: whoever deletes the item has the message, so of two attempts of one task only one gets it. It is
-- found by its lease, in any stream and epoch: a task of an older owner is as good as any other, if it is
-- the first. Locks items.
create or replace function "laneway".take_stream_v1(p_ids bigint[], p_fences bigint[])
returns table (
    id bigint, fence bigint, queue text, channel text, kind text, priority smallint, attempt bigint,
    max_attempts integer, due double precision, published_at double precision,
    first_published_at double precision, expires_at double precision, key text, content_type text,
    headers text, state_type text, state bytea, payload bytea, spent integer,
    claimed_at timestamptz, until timestamptz, time_left double precision)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    with wanted as materialized (
        select i.stream, i.seq, i.place
        from stream_item i join unnest(p_ids, p_fences) w(id, fence) on w.id = i.message_id and w.fence = i.fence
        order by i.stream, i.seq, i.place for update of i
    ),
    taken as (
        delete from stream_item i using wanted w
        where i.stream = w.stream and i.seq = w.seq and i.place = w.place
        returning i.message_id, i.fence, i.seq, i.place
    )
    select array_agg(t.message_id order by t.seq, t.place), array_agg(t.fence order by t.seq, t.place)
    into v_ids, v_fences from taken t;
    return query
    select m.id, l.fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        extract(epoch from m.due)::double precision, extract(epoch from m.published_at)::double precision,
        extract(epoch from m.first_published_at)::double precision, extract(epoch from m.expires_at)::double precision,
        m.key, m.content_type, m.headers::text, m.state_type, m.state, m.payload, m.spent,
        l.claimed_at, l.until, extract(epoch from l.until - clock_timestamp())::double precision
    from unnest(v_ids, v_fences) with ordinality t(id, fence, place)
    join lease l on l.message_id = t.id and l.fence = t.fence
    join message m on m.id = t.id
    order by t.place;
end
$$;
