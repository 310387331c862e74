-- The time for a verb that appends wakes or tokens: the transaction gets its number first and the
-- clock is read second. So whoever took a snapshot before this moment either sees the transaction
-- in it or has an older clock reading, which is what the floors of claim_v1 stand on.
create or replace function "penstock".write_time_v1(p_now timestamptz)
returns timestamptz
language plpgsql
as $$
begin
    perform pg_current_xact_id();
    return coalesce(p_now, clock_timestamp());
end
$$;
