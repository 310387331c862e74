-- Part of release_keys_v1, for keys that are not simply those of the messages that end: one of these waits behind
-- another message, or another behind it, or the key went to somebody else.
--
-- Keeps: a key whose message ended while it waited belongs to the running message again. Locks keys in order.
create or replace function "laneway".pass_keys_v1(
    p_ids bigint[], p_queues text[], p_keys text[], p_windows interval[], p_now timestamptz
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    -- Locks; what is read from here on stays as it is.
    perform start_behind_v1(p_ids, p_queues, p_keys, p_now);
    delete from dedupe k using unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    update dedupe k set expires_at = p_now + x.win
    from unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is not null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    update dedupe k set message_id = k.behind, behind = null, behind_due = null
    from unnest(p_ids, p_queues, p_keys) x(id, queue, key)
    where k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is not null;
end
$$;
