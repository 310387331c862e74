-- The notification channel of this schema; a payload is the name of the queue that has news.
create or replace function "penstock".bell_v1()
returns text
language sql stable
return 'penstock_' || left(encode(sha256(convert_to('"penstock"', 'UTF8')), 'hex'), 32);
