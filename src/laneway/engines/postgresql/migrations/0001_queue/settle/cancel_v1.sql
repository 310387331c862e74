-- cancel: end waiting messages without an attempt. Leased ones stay with their holders.
--
-- Keeps: a message is either claimed or cancelled, never both: cancelling locks the channel, as a
-- claim does. Locks channel rows in id order.
create or replace function "laneway".cancel_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_ended bigint[];
begin
    perform lock_channels_v1(array_agg(x.queue), array_agg(x.channel))
    from (select distinct m.queue, m.channel from message m where m.id = any(p_ids)) x;
    -- Read once the channels are locked: a holder may have ended its attempt while this waited.
    v_now := write_time_v1(p_now);
    v_ended := end_waiting_v1(p_ids, 'cancelled', v_now);
    return query
    select x.id, case
        when x.id = any(v_ended) then 'cancelled'
        when exists (select from message m where m.id = x.id) then 'leased'
        when exists (select from dead d where d.id = x.id) then 'dead'
        else 'absent' end
    from (select distinct u.id from unnest(p_ids) u(id)) x;
end
$$;
