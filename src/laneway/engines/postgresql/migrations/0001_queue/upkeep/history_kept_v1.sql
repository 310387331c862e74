-- Part of upkeep: whether a day of history is still needed after the retention. Never here; migration 7
-- replaces this for lakes that have not copied it yet.
create or replace function "laneway".history_kept_v1(p_day date) returns boolean
language sql
as $$ select false $$;
