-- Part of cancel, set policy, pause and remove: lock channel rows as a claim does, and wait for them;
-- channels that have no row yet get one.
--
-- Keeps: what the caller reads next is newer than anything the last owner wrote, which takes READ
-- COMMITTED. Locks: an advisory lock, shared, so that channel rows are not deleted (cleanup takes it alone),
-- then new rows and then all rows, both in id order.
create or replace function "laneway".lock_channels_v1(p_queues text[], p_names text[])
returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_channel_ids uuid[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'laneway: this needs READ COMMITTED, the transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Use a connection of its own.';
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended(current_schema() || '.channels', 0));
    insert into channel (id, queue, name)
    select channel_id_v1(x.queue, x.name), x.queue, x.name
    from unnest(p_queues, p_names) x(queue, name) order by 1
    on conflict do nothing;
    v_channel_ids := array(select channel_id_v1(x.queue, x.name) from unnest(p_queues, p_names) x(queue, name));
    perform from channel c where c.id = any(v_channel_ids) order by c.id for no key update;
end
$$;
