-- The id of a channel, from its names alone: no look-up, no row to create, nothing to wait for.
-- 128 bits of SHA-256, so that no tenant can pick a name that lands in another's channel.
create or replace function "laneway".channel_id_v1(p_queue text, p_channel text)
returns uuid
-- Stable, as convert_to is: an immutable one could not be inlined, and would cost three times as much.
language sql stable parallel safe
return encode(
    substring(sha256(convert_to(length(p_queue) || ':' || p_queue || p_channel, 'UTF8')) for 16), 'hex'
)::uuid;
