-- Part of cancel, set policy, pause and remove: own channels as a claim does, in a transaction of our
-- own; those that have no row yet get one.
--
-- Keeps: what the caller reads next is newer than anything the last owner wrote, which takes READ
-- COMMITTED. Locks: the shared right to count on channel rows (tidy takes it alone to delete some),
-- then new rows and then all rows, both in id order.
create or replace function "penstock".own_v1(p_queues text[], p_names text[])
returns void
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
as $$
declare
    v_lanes uuid[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'penstock: this needs READ COMMITTED, the transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Use a connection of its own.';
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended(current_schema() || '.channels', 0));
    insert into channel (id, queue, name)
    select channel_id_v1(x.queue, x.name), x.queue, x.name
    from unnest(p_queues, p_names) x(queue, name) order by 1
    on conflict do nothing;
    v_lanes := array(select channel_id_v1(x.queue, x.name) from unnest(p_queues, p_names) x(queue, name));
    perform from channel c where c.id = any(v_lanes) order by c.id for no key update;
end
$$;
