-- Part of cancel and upkeep: lock the keys of these messages in order, before the messages themselves. Who ends a
-- message locks the one that waits behind it (start_behind_v1) once it holds the key: the same order.
-- p_wait: wait for those that others hold; else answers the messages whose keys others hold.
create or replace function "laneway".lock_keys_v1(p_ids bigint[], p_wait boolean)
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_keyed bigint[] := array(select m.id from message m where m.id = any(p_ids) and m.key is not null);
    v_locked bigint[];
begin
    if cardinality(v_keyed) = 0 then
        return '{}';
    end if;
    if p_wait then
        perform from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) order by k.queue, k.key for update of k;
        return '{}';
    end if;
    v_locked := array(
        select m.id from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) order by k.queue, k.key for update of k skip locked);
    return array(
        select m.id from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) and m.id <> all(v_locked));
end
$$;
