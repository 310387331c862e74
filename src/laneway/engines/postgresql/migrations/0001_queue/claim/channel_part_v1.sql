-- Which of sixteen parts a channel falls into, for claims that run beside others: see claim_part_v1.
create or replace function "laneway".channel_part_v1(p_channel_id uuid)
returns integer
language sql immutable parallel safe
return get_byte(uuid_send(p_channel_id), 15) % 16;
