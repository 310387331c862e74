-- The time for a verb that appends wakes or tokens: the transaction gets its number first and the
-- clock is read second. So whoever took a snapshot before this moment either sees the transaction
-- in it or has an older clock reading. The floors of claim_v1 rely on that.
-- p_now is for tests: only the owner may set the time, not roles that were granted a verb (install --roles).
create or replace function "laneway".write_time_v1(p_now timestamptz)
returns timestamptz
language plpgsql
as $$
begin
    perform pg_current_xact_id();
    if p_now is null or not pg_has_role(session_user, current_user, 'member') then
        return clock_timestamp();
    end if;
    return p_now;
end
$$;
