-- Part of claim: the next message of a channel of any kind, and its lane, for a channel that starts one
-- message at a time. Reads the messages themselves: wakes of other kinds have not been read.
create or replace function "laneway".claim_head_v1(
    p_channel_id uuid, p_skips bigint, p_now timestamptz,
    out id bigint, out message "laneway".message, out due timestamptz, out priority smallint, out lane text
)
language sql stable
as $$
    select m.id, m.message, m.due, m.priority, m.lane
    from (
        select m.*, p.priority::smallint as priority,
            row_number() over (order by m.due, m.id) > (p_skips + 1) / 10 as young
        from generate_series(0, 9) p(priority)
        cross join lateral (
            select k as message, k.id, k.due, '=' || k.kind as lane
            from "laneway".message k
            where k.channel_id = p_channel_id and k.priority = p.priority and k.due <= p_now
                and (k.expires_at is null or k.expires_at > p_now)
                and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
            order by k.due, k.id limit 1
        ) m
    ) m
    order by m.young, m.priority desc, m.due, m.id limit 1
$$;
