-- Which of sixteen parts a channel falls into, for claims that meet others: see claim_v1.
create or replace function "penstock".part_v1(p_channel_id uuid)
returns integer
language sql immutable parallel safe
return get_byte(uuid_send(p_channel_id), 15) % 16;
