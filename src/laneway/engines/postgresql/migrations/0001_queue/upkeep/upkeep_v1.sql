-- upkeep: periodic maintenance. Any process may call it as often as it likes: one at a time works (a
-- transaction-level lock), the others answer at once with ran = false.
create or replace function "laneway".upkeep_v1(
    p_limit integer default 1000, p_floor timestamptz default null, p_now timestamptz default null,
    out ran boolean, out expired bigint, out buried bigint, out lapsed bigint, out tidied bigint,
    out partitioned bigint, out floor timestamptz
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    -- Else a role that was only granted this verb could drop history with a time in the future.
    if p_now is not null and not pg_has_role(session_user, current_user, 'member') then
        p_now := null;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'laneway: upkeep needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Run it on a connection of its own.';
    end if;
    ran := pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.upkeep', 0));
    if not ran then
        floor := p_floor;
        return;
    end if;
    select e.expired, e.buried, e.floor into expired, buried, floor
    from expire_leases_v1(p_limit, p_floor, p_now) e;
    lapsed := lapse_v1(p_limit, p_now);
    tidied := settle_strays_v1(p_now) + cleanup_v1(p_limit, p_now)
        + control_cleanup_v1(p_limit, p_now) + cleanup_workers_v1(p_now) + cleanup_results_v1(p_limit, p_now)
        + cleanup_flows_v1(p_limit, p_now);
    partitioned := partition_v1(p_now);
end
$$;
