-- discard: dead letters end for good. Answers the ids that ended.
-- Locks dead letters in id order.
create or replace function "penstock".discard_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint)
language plpgsql
set search_path = "penstock", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
begin
    with chosen as materialized (
        select d.id from dead d where d.id = any(p_ids) order by d.id for update skip locked
    ),
    gone as (
        delete from dead d where d.id = any(array(select c.id from chosen c))
        returning d.id, d.queue, d.channel, d.kind, d.key, d.key_window, d.priority, d.attempt, d.reason, d.error_type,
            d.published_at, d.first_published_at, octet_length(d.payload) as payload_size
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, -count(*) from gone g group by g.queue, g.channel
    ),
    told as (
        insert into history (message_id, attempt, first_published_at, published_at, ended_at, payload_size,
            terminal, dead, priority, queue, channel, kind, outcome, reason, error_type)
        select g.id, g.attempt, g.first_published_at, g.published_at, v_now, g.payload_size,
            true, false, g.priority, g.queue, g.channel, g.kind, 'discarded', g.reason, g.error_type
        from gone g, setting s where s.history <> 'none'
    )
    select array_agg(g.id order by g.id),
        array_agg(g.id) filter (where g.key is not null), array_agg(g.queue) filter (where g.key is not null),
        array_agg(g.key) filter (where g.key is not null), array_agg(g.key_window) filter (where g.key is not null),
        array_agg(g.queue order by g.id), array_agg(g.channel order by g.id), array_agg(g.kind order by g.id)
    into p_ids, v_keyed, v_key_queues, v_keys, v_windows, v_queues, v_channels, v_kinds
    from gone g;
    perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, v_now);
    if p_ids is not null and exists (select from listener l where l.until > v_now) then
        perform post_v1(array_fill('discarded'::text, array[cardinality(p_ids)]), p_ids, v_queues, v_channels, v_kinds, v_now);
    end if;
    return query select x.id from unnest(p_ids) x(id);
end
$$;
