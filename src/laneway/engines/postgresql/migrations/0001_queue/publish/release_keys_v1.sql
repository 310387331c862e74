-- Part of every verb that ends messages: their keys are released, at once or after their window.
-- Null arrays: none of them had a key.
create or replace function "laneway".release_keys_v1(
    p_ids bigint[], p_queues text[], p_keys text[], p_windows interval[], p_now timestamptz
) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_deleted bigint;
    v_kept bigint;
begin
    if p_keys is null then
        return;
    end if;
    delete from dedupe k using unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    get diagnostics v_deleted = row_count;
    update dedupe k set expires_at = p_now + x.win
    from unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is not null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    get diagnostics v_kept = row_count;
    if v_deleted + v_kept < cardinality(p_ids) then
        perform pass_keys_v1(p_ids, p_queues, p_keys, p_windows, p_now);
    end if;
end
$$;
