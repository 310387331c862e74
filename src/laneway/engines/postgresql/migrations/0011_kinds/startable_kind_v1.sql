-- Part of claim: what startable_v1 answers, of one kind of a queue that is claimed by kind.
create or replace function "laneway".startable_kind_v1(
    p_channel_id uuid, p_kind text, p_priority smallint, p_due timestamptz, p_mid bigint, p_now timestamptz
) returns table (message "laneway".message, id bigint, due timestamptz)
language sql stable
as $$
    select k, k.id, k.due
    from "laneway".message k
    where k.by_kind and k.channel_id = p_channel_id and k.kind = p_kind and k.priority = p_priority
        and (k.due, k.id) > (p_due, p_mid) and k.due <= p_now
        and (k.expires_at is null or k.expires_at > p_now)
        and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
$$;
