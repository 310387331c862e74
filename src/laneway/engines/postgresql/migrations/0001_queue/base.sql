-- The time for a verb that appends wakes or tokens: the transaction gets its number first and the
-- clock is read second. So whoever took a snapshot before this moment either sees the transaction
-- in it or has an older clock reading. The floors of claim_v1 rely on that.
-- What it writes has numbers of this life of the server (server_life_v1).
-- p_now is for tests: only the owner may set the time, not roles that were granted a verb (install --roles).
create or replace function "laneway".write_time_v1(p_now timestamptz)
returns timestamptz
language plpgsql
as $$
begin
    perform pg_current_xact_id();
    perform "laneway".server_life_v1();
    if p_now is null or not pg_has_role(session_user, current_user, 'member') then
        return clock_timestamp();
    end if;
    return p_now;
end
$$;

-- The time for a verb that appends none of these: p_now counts as there.
create or replace function "laneway".time_v1(p_now timestamptz)
returns timestamptz
language sql volatile
return case when p_now is not null and pg_has_role(session_user, current_user, 'member') then p_now else clock_timestamp() end;

-- The id of a channel, from its names alone: no look-up, no row to create, nothing to wait for.
-- 128 bits of SHA-256, so that no tenant can pick a name that lands in another's channel.
create or replace function "laneway".channel_id_v1(p_queue text, p_channel text)
returns uuid
-- Stable, as convert_to is: an immutable one could not be inlined, and would cost three times as much.
language sql stable parallel safe
return encode(
    substring(sha256(convert_to(length(p_queue) || ':' || p_queue || p_channel, 'UTF8')) for 16), 'hex'
)::uuid;

-- Computed once for a batch of one channel, else null: this hash is an eighth of the cost of a message.
create or replace function "laneway".only_channel_id_v1(p_queues text[], p_channels text[])
returns uuid
language sql stable parallel safe
return case when cardinality(p_queues) = 1 and cardinality(p_channels) = 1
    then "laneway".channel_id_v1(p_queues[1], p_channels[1]) end;

-- Which of sixteen parts a channel falls into, for claims that run beside others: see claim_part_v1.
create or replace function "laneway".channel_part_v1(p_channel_id uuid)
returns integer
language sql immutable parallel safe
return get_byte(uuid_send(p_channel_id), 15) % 16;

-- The notification channel (LISTEN) of this schema; the payload is the name of the queue that has work.
create or replace function "laneway".notify_channel_v1()
returns text
language sql stable
return 'laneway_' || left(encode(sha256(convert_to('"laneway"', 'UTF8')), 'hex'), 32);
