-- Part of upkeep: a day stays, whatever the retention says, while a lake is in use and does not hold all
-- of it for certain, or a registered reader has not read it.
create or replace function "laneway".history_kept_v1(p_day date) returns boolean
language plpgsql
as $$
begin
    return exists (
        select from "laneway".lake_commit c
        where c.state in ('planned', 'written')
            and c.first_ended_at < (p_day + 1)::timestamp at time zone 'UTC'
            and c.last_ended_at >= p_day::timestamp at time zone 'UTC')
    or exists (
        select from "laneway".history h, "laneway".history_needed_v1() n
        where h.ended_at >= p_day::timestamp at time zone 'UTC'
            and h.ended_at < (p_day + 1)::timestamp at time zone 'UTC'
            and (h.xid, h.id) > (n.xid, n.id));
end
$$;
