-- keep staged: the last call of an attempt before it commits. False: its job is over and its rows would
-- never be published, so it must roll back.
--
-- Locks: the job's row until the commit, so that whoever ends the job waits and finds the table.
create or replace function "laneway".keep_staged_v1(p_job text)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform from staged s where s.name = p_job for key share;
    return found;
end
$$;
