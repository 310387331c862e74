-- purge: drop a day of history that is in the lake. Answers how many rows went, or null if it was not done.
--
-- Keeps: only rows are dropped that every lake holds in verified batches, and this one has some. The
-- partition is locked first and read again under the lock, so a row that came in between keeps its day. If
-- the lock is not free at once, the day is left for the next time. Upkeep drops whole days by age as well,
-- but never one that a lake still needs (history_kept_v1).
create or replace function "laneway".purge_day_v1(p_lake text, p_day date)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '2s'
as $$
declare
    v_from timestamptz := p_day::timestamp at time zone 'UTC';
    v_until timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
    v_name text := 'history_' || to_char(p_day, 'YYYYMMDD');
    v_part regclass := to_regclass(quote_ident(v_name));
    v_rows bigint;
    v_kept bigint;
begin
    if not exists (select from lake_commit c where c.lake = p_lake) then
        return null;
    end if;
    if v_part is null then
        v_name := 'history_other';
    end if;
    execute format('lock table %I in access exclusive mode', v_name);
    -- Batches follow one another, so what is past the end, or in one that is not verified, is not safe.
    select count(*), count(*) filter (
        where coalesce((h.xid, h.id) > (n.xid, n.id), true)
            or exists (
                select from lake_commit c
                where c.state in ('planned', 'written')
                    and (h.xid, h.id) > (c.from_xid, c.from_id) and (h.xid, h.id) <= (c.to_xid, c.to_id)))
    into v_rows, v_kept
    from history h left join history_needed_v1() n on true
    where h.ended_at >= v_from and h.ended_at < v_until;
    if v_kept > 0 or v_rows = 0 then
        return null;
    end if;
    if v_part is null then
        delete from history_other h where h.ended_at >= v_from and h.ended_at < v_until;
    else
        execute format('drop table %I', v_name);
    end if;
    return v_rows;
exception when lock_not_available or deadlock_detected then
    return null;
end
$$;
