-- The lake's catalog: which part of the history is in which files, and whether that was verified.
--
-- A batch is a range of (xid, id), fixed before anything of it is written; writing it again gives the
-- same files. States: planned -> written -> verified -> purged; a batch whose files turn out to be
-- damaged goes back to planned. Checksums are sums over rows, so those of files and batches add up.
create table "laneway".lake_commit (
    lake text collate "C" not null,
    batch bigint not null,
    from_xid bigint not null,
    from_id bigint not null,
    to_xid bigint not null,
    to_id bigint not null,
    rows bigint not null,
    checksum numeric not null,
    first_ended_at timestamptz not null,
    last_ended_at timestamptz not null,
    state text not null default 'planned' check (state in ('planned', 'written', 'verified', 'purged')),
    planned_at timestamptz not null default clock_timestamp(),
    written_at timestamptz,
    verified_at timestamptz,
    purged_at timestamptz,
    primary key (lake, batch)
);

-- One row per file that belongs to a lake; a file without a row is a leftover. A compacted file holds
-- several batches; while staged is set, it lies there and the files it replaces may still exist.
create table "laneway".lake_file (
    lake text collate "C" not null,
    path text collate "C" not null,
    day date not null,
    batches bigint[] not null,
    rows bigint not null,
    checksum numeric not null,
    size bigint not null,
    staged text,
    replaces text[],
    primary key (lake, path)
);

-- Registered streams of the history. What comes after (xid, id) is kept for them, but no longer than patience
-- after they were last seen. (at_xid, at_id) is their checkpoint: behind it they may have passed rows that
-- they do not want. missed_at: when rows were deleted that it had not read.
create table "laneway".history_reader (
    name text collate "C" primary key,
    xid bigint not null,
    id bigint not null,
    at_xid bigint not null,
    at_id bigint not null,
    patience interval not null,
    seen_at timestamptz not null default clock_timestamp(),
    missed_at timestamptz
);

-- Up to where the history is no longer needed: what comes after, no lake has planned or a registered stream
-- has not read (unless p_readers is false). No row: nobody reads the history.
--
-- A number that this server has not given yet is of another one, whose dump was restored here: what is
-- written now comes before it, so all is needed.
create or replace function "laneway".history_needed_v1(p_readers boolean default true)
returns table (xid bigint, id bigint)
language sql
as $$
    select case when n.known then n.xid else 0 end, case when n.known then n.id else 0 end from (
        select e.xid, e.id, e.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint as known from (
            (select distinct on (c.lake) c.to_xid as xid, c.to_id as id from "laneway".lake_commit c
            order by c.lake, c.batch desc)
            union all
            select r.xid, r.id from "laneway".history_reader r
            where p_readers and r.missed_at is null and r.seen_at + r.patience > clock_timestamp()
        ) e
    ) n
    order by 1, 2 limit 1
$$;

-- Part of upkeep: a day stays, whatever the retention says, while a lake is in use and does not hold all
-- of it for certain, or a registered stream has not read it.
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

-- Before a day of history is dropped, in the same transaction: the streams that had not read all of it lose
-- rows, and are told so when they next say how far they are. The lock keeps out those that would register
-- between this and the drop, and hear nothing of it.
create or replace function "laneway".miss_history_v1(p_day date) returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    lock table history_reader in share row exclusive mode;
    update history_reader r set missed_at = clock_timestamp()
    where r.missed_at is null and exists (
        select from history h
        where h.ended_at >= p_day::timestamp at time zone 'UTC'
            and h.ended_at < (p_day + 1)::timestamp at time zone 'UTC'
            and h.xid >= r.xid and (h.xid, h.id) > (r.xid, r.id));
end
$$;

-- read history: a stream says how far its checkpoint is, so that nothing after that is deleted. Null: it is
-- gone. p_through: of what came before that transaction, it wants nothing more.
--
-- Answers ok; missed: rows were deleted that it had not read; behind: the stream has been further. From (0, 0)
-- a stream begins anew, with what there is.
create or replace function "laneway".read_history_v1(
    p_name text, p_xid bigint, p_id bigint default 0, p_through bigint default 0, p_patience interval default '7 days')
returns text
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_reader history_reader;
    v_anew boolean := (p_xid, p_id) = (0, 0);
begin
    if p_xid is null then
        delete from history_reader r where r.name = p_name;
        return case when found then 'ok' else 'unknown' end;
    end if;
    insert into history_reader (name, xid, id, at_xid, at_id, patience)
    values (p_name, p_xid, p_id, p_xid, p_id, p_patience)
    on conflict (name) do nothing;
    select * into v_reader from history_reader r where r.name = p_name for update;
    if v_reader.missed_at is not null and not v_anew then
        return 'missed';
    end if;
    if (p_xid, p_id) < (v_reader.at_xid, v_reader.at_id) and not v_anew then
        return 'behind';
    end if;
    update history_reader r
    set xid = greatest(p_xid, p_through), id = case when p_through > p_xid then 0 else p_id end,
        at_xid = p_xid, at_id = p_id, patience = p_patience, seen_at = clock_timestamp(), missed_at = null
    where r.name = p_name;
    return 'ok';
end
$$;

-- purge: drop a day of history that is in the lake. Answers how many rows went, or null if it was not done.
--
-- Keeps: only rows are dropped that every lake holds in verified batches, and this one has some, and that
-- every registered stream has read, unless p_force. Streams and the partition are locked first (in the order
-- of upkeep) and read again under the locks, so a row or a stream that came in between keeps its day. If a
-- lock is not free at once, the day is left for the next time. Upkeep drops whole days by age as well, but
-- never one that a lake or a stream still needs (history_kept_v1).
create or replace function "laneway".purge_day_v1(p_lake text, p_day date, p_force boolean default false)
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
    lock table history_reader in share row exclusive mode;
    execute format('lock table %I in access exclusive mode', v_name);
    -- Batches follow one another, so what is past the end, or in one that is not verified, is not safe.
    select count(*), count(*) filter (
        where coalesce((h.xid, h.id) > (n.xid, n.id), true)
            or exists (
                select from lake_commit c
                where c.state in ('planned', 'written')
                    and (h.xid, h.id) > (c.from_xid, c.from_id) and (h.xid, h.id) <= (c.to_xid, c.to_id)))
    into v_rows, v_kept
    from history h left join history_needed_v1(not p_force) n on true
    where h.ended_at >= v_from and h.ended_at < v_until;
    if v_kept > 0 or v_rows = 0 then
        return null;
    end if;
    perform miss_history_v1(p_day);
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

create view "laneway".lake_commit_v1 as
select c.lake, c.batch, c.from_xid, c.from_id, c.to_xid, c.to_id, c.rows, c.checksum, c.first_ended_at, c.last_ended_at,
    c.state, c.planned_at, c.written_at, c.verified_at, c.purged_at,
    array(select f.path from "laneway".lake_file f where f.lake = c.lake and c.batch = any(f.batches) order by f.path) as files
from "laneway".lake_commit c;
