-- Part of claim: the messages of a channel and priority after a position that may start now: due, not
-- lapsed, not leased. The caller adds `order by due, id limit n`, which the index message_order serves.
--
-- The planner puts the body in place of the call (SQL, stable, no SET), so sharing it costs nothing,
-- and columns that the caller does not name are not read.
create or replace function "laneway".startable_v1(
    p_channel_id uuid, p_priority smallint, p_due timestamptz, p_mid bigint, p_now timestamptz
) returns table (
    tid tid, id bigint, channel text, kind text, attempt bigint, max_attempts integer, due timestamptz,
    published_at timestamptz, first_published_at timestamptz, expires_at timestamptz, key text,
    content_type text, headers jsonb, state_type text, state bytea, payload bytea, spent integer
)
language sql stable
as $$
    select k.ctid, k.id, k.channel, k.kind, k.attempt, k.max_attempts, k.due,
        k.published_at, k.first_published_at, k.expires_at, k.key,
        k.content_type, k.headers, k.state_type, k.state, k.payload, k.spent
    from "laneway".message k
    where k.channel_id = p_channel_id and k.priority = p_priority
        and (k.due, k.id) > (p_due, p_mid) and k.due <= p_now
        and (k.expires_at is null or k.expires_at > p_now)
        and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
$$;
