-- count: bring the minutes and the kept counts up to date; part of upkeep, in a transaction of its own. Any process
-- may call it: one at a time works, the others answer at once.
--
-- Keeps: every history row and every publish is counted once, whatever is rolled back or killed: the position moves
-- in the transaction that adds the figures. Nothing is counted before every transaction has ended that could come
-- before it. Reads up to p_limit rows in parts. Locks its own row only.
-- Answers how many history rows and message ids were counted, and whether more is there.
create or replace function "laneway".count_v1(
    p_limit integer default 20000, p_now timestamptz default null, out counted bigint, out more boolean
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_state counting;
    v_setting setting;
    v_now timestamptz;
    v_ids bigint;
    v_history bigint;
    v_all boolean;
    v_exact boolean;
    v_minute timestamptz;
    v_noted boolean := false;
    v_upper bigint;
    v_part record;
begin
    counted := 0;
    more := false;
    if p_now is not null and not pg_has_role(session_user, current_user, 'member') then
        p_now := null;
    end if;
    v_now := coalesce(p_now, clock_timestamp());
    if not pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.count', 0)) then
        return;
    end if;
    select c.* into v_state from counting c;
    select s.* into v_setting from setting s;
    v_minute := date_trunc('minute', v_now, 'UTC');
    -- The sequences are read before the number below: whoever took one of these ids had its own number before.
    select m.last_value - (not m.is_called)::integer, h.last_value - (not h.is_called)::integer into v_ids, v_history
    from message_id m, history_id h;
    if (v_state.xid, v_state.id, v_state.counted, v_state.to_history) = (v_state.to_xid, 0::bigint, v_ids, v_history)
        and v_state.history_changes = v_setting.history_changes
        and (v_state.begun or v_setting.history <> 'all')
        and date_trunc('minute', v_state.noted_at, 'UTC') = v_minute
        and not exists (select from staged_count s where not s.counted) then
        return;  -- Nothing has happened since the last cycle.
    end if;
    -- What is not kept cannot be counted: begin anew with what is there, once it is kept again.
    if v_state.begun and (v_setting.history <> 'all' or v_state.history_changes <> v_setting.history_changes) then
        v_state.begun := false;
        v_state.as_of := null;
        delete from live_count;
    end if;

    for v_cycle in 1 .. 2 loop
        if v_state.to_xid is null
            or (v_state.xid, v_state.id, v_state.counted) = (v_state.to_xid, 0::bigint, v_state.to_id) then
            v_state.to_id := v_ids;
            v_state.to_history := v_history;
            -- Our own number: all that were given before are lower. (A snapshot's xmax is not: transactions
            -- above it may have been running for long.)
            v_state.to_xid := pg_current_xact_id()::text::bigint;
            v_state.noted_at := v_now;
            v_state.changes_before := v_state.history_changes;
            v_state.history_changes := v_setting.history_changes;
            v_noted := true;
        end if;
        exit when pg_snapshot_xmin(pg_current_snapshot())::text::bigint < v_state.to_xid;
        v_all := v_setting.history = 'all' and v_state.history_changes = v_setting.history_changes;
        v_exact := v_all and v_state.changes_before = v_state.history_changes;

        if v_state.xid = 0 then
            v_state.xid := v_state.to_xid;
            v_state.counted := v_state.to_id;
        end if;
        while counted < p_limit and (v_state.xid, v_state.id) <> (v_state.to_xid, 0::bigint) loop
            v_upper := least(v_state.to_xid, v_state.xid + v_state.width);
            select * into v_part
            from count_history_v1(v_state.xid, v_state.id, v_upper, (p_limit - counted)::integer, v_exact);
            counted := counted + v_part.counted;
            if counted < p_limit then
                v_state.xid := v_upper;
                v_state.id := 0;
                if v_part.counted < p_limit / 4 then
                    v_state.width := least(v_state.width * 4, 1000000000);
                end if;
            else
                v_state.xid := v_part.last_xid;
                v_state.id := v_part.last_id;
                v_state.width := greatest(v_state.width / 2, 16);
            end if;
        end loop;
        if v_state.counted < v_state.to_id
            or exists (select from staged_count s where not s.counted and s.xid < v_state.to_xid) then
            v_upper := least(v_state.to_id, v_state.counted + p_limit);
            perform count_published_v1(v_state.counted, v_upper, v_state.to_xid, v_exact);
            counted := counted + v_upper - v_state.counted;
            v_state.counted := v_upper;
        end if;
        if (v_state.xid, v_state.id, v_state.counted) <> (v_state.to_xid, 0::bigint, v_state.to_id) then
            more := true;
            exit;
        end if;
        if not v_state.begun and v_all then
            v_state.begun := count_begin_v1(v_state);
        end if;
        if v_state.begun then
            v_state.as_of := v_state.noted_at;
            perform count_depth_v1(v_state.noted_at, v_state.depth_at);
            v_state.depth_at := v_state.noted_at;
        end if;
        exit when v_noted;
    end loop;

    update counting c set begun = v_state.begun, xid = v_state.xid, id = v_state.id, counted = v_state.counted,
        width = v_state.width, to_xid = v_state.to_xid, to_id = v_state.to_id, to_history = v_state.to_history,
        noted_at = v_state.noted_at, as_of = v_state.as_of, depth_at = v_state.depth_at,
        history_changes = v_state.history_changes, changes_before = v_state.changes_before;
    delete from staged_count s where s.counted and s.last_id <= v_state.counted;
    for v_span in 0 .. 1 loop
        delete from minute m where (m.span, m.at, m.queue, m.kind) in (
            select k.span, k.at, k.queue, k.kind from minute k
            where k.span = 1 + 59 * v_span and k.at < v_now - interval '14 days' order by k.span, k.at limit 1000);
    end loop;
end
$$;
