-- Part of upkeep: whether a day of history is still needed though it is past the retention. Nothing here
-- needs it; a lake that has not got it yet does.
create or replace function "penstock".history_kept_v1(p_day date) returns boolean
language sql
as $$ select false $$;
