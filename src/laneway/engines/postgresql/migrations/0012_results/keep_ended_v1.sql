-- Part of cancel, upkeep and discard: how messages ended that no handler ended, if their results were to be kept.
-- Null arrays: none of them was.
create or replace function "laneway".keep_ended_v1(
    p_ids bigint[], p_queues text[], p_channels text[], p_kinds text[], p_keeps interval[],
    p_outcome text, p_reasons text[], p_error_types text[], p_errors text[], p_now timestamptz
) returns void
language plpgsql
as $$
begin
    if p_ids is null then
        return;
    end if;
    insert into result (message_id, ended_at, expires_at, queue, channel, kind, outcome, reason, error_type, error)
    select x.id, p_now, p_now + x.keep, x.queue, x.channel, x.kind, p_outcome, x.reason, x.error_type, x.error
    from unnest(p_ids, p_queues, p_channels, p_kinds, p_keeps, p_reasons, p_error_types, p_errors)
        x(id, queue, channel, kind, keep, reason, error_type, error)
    on conflict (message_id) do nothing;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array['kept results'], p_now);
    end if;
end
$$;
