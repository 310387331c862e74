-- discard: dead letters end for good. Answers the ids that ended.
-- Locks dead letters in id order.
create or replace function "penstock".discard_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint)
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query
    with chosen as materialized (
        select d.id from dead d where d.id = any(p_ids) order by d.id for update skip locked
    ),
    gone as (
        delete from dead d using chosen c where d.id = c.id returning d.*
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, -count(*) from gone g group by g.queue, g.channel
    ),
    told as (
        insert into history (message_id, attempt, first_published_at, published_at, ended_at, payload_size,
            terminal, dead, priority, queue, channel, kind, outcome, reason, error_type)
        select g.id, g.attempt, g.first_published_at, g.published_at, v_now, octet_length(g.payload),
            true, false, g.priority, g.queue, g.channel, g.kind, 'discarded', g.reason, g.error_type
        from gone g, setting s where s.history <> 'none'
    ),
    unkeyed as (
        delete from dedupe k using gone g
        where g.key is not null and g.key_window is null and k.queue = g.queue and k.key = g.key and k.message_id = g.id
    ),
    aging as (
        update dedupe k set expires_at = v_now + g.key_window from gone g
        where g.key is not null and g.key_window is not null
            and k.queue = g.queue and k.key = g.key and k.message_id = g.id
    )
    select g.id from gone g order by g.id;
end
$$;
