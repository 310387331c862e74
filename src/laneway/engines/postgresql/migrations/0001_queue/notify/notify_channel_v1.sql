-- The notification channel (LISTEN) of this schema; the payload is the name of the queue that has work.
create or replace function "laneway".notify_channel_v1()
returns text
language sql stable
return 'laneway_' || left(encode(sha256(convert_to('"laneway"', 'UTF8')), 'hex'), 32);
