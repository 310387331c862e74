-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table "laneway".result (
    message_id bigint primary key,
    ended_at timestamptz not null,
    expires_at timestamptz not null,
    queue text collate "C" not null,
    channel text collate "C" not null,
    kind text collate "C" not null,
    outcome text not null,
    reason text,
    error_type text,
    error text,
    content_type text,
    payload bytea
);
create index result_expiry on "laneway".result (expires_at);

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table "laneway".progress (
    message_id bigint primary key,
    fence bigint not null,
    at timestamptz not null,
    share double precision,
    note text
);
create index progress_at on "laneway".progress (at);

-- The results that are still kept, of messages that completed. No row for others.
-- p_now: as in write_time_v1, only the owner's counts: a slow clock would show what is no longer kept.
create or replace function "laneway".results_v1(p_ids bigint[], p_now timestamptz default null)
returns table (message_id bigint, content_type text, payload bytea)
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
    select r.message_id, r.content_type, r.payload from result r
    where r.message_id = any(p_ids) and r.payload is not null and r.expires_at > coalesce(
        case when pg_has_role(session_user, current_user, 'member') then p_now end, clock_timestamp())
$$;

-- How messages ended: one row each, in order; the outcome is null if the message has not ended. All is read in one
-- snapshot, so a message is seen in exactly one state. A result that is kept knows more than a history that keeps
-- only failures, or nothing; so does a node of a flow.
create or replace function "laneway".endings_v1(p_ids bigint[])
returns table (id bigint, outcome text, ended_at timestamptz, reason text, error_type text, error text, kept_until timestamptz)
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
    select x.id,
        case when m.id is not null then null when d.id is not null then 'dead'
            else coalesce(r.outcome, h.outcome, case when n.state = 'held' or n.staged then null else coalesce(n.state, 'unknown') end) end,
        coalesce(d.died_at, r.ended_at, h.ended_at, n.ended_at), coalesce(d.reason, r.reason, h.reason),
        coalesce(d.error_type, r.error_type, h.error_type), coalesce(d.error, r.error, h.error), r.expires_at
    from unnest(p_ids) with ordinality x(id, ordinal)
    left join lateral (select k.id from message k where k.id = x.id offset 0) m on true
    left join lateral (
        select k.id, k.died_at, k.reason, k.error_type, k.error from dead k
        where k.id = x.id and m.id is null offset 0) d on true
    left join lateral (
        select k.outcome, k.ended_at, k.reason, k.error_type, k.error, k.expires_at from result k
        where k.message_id = x.id and m.id is null and d.id is null offset 0) r on true
    left join lateral (
        select k.outcome, k.ended_at, k.reason, k.error_type, k.error from history k
        where k.message_id = x.id and k.terminal and m.id is null and d.id is null and r.outcome is null
        order by k.id desc limit 1) h on true
    -- One that waits for others in a flow, or never was a message there.
    left join lateral (
        select k.state, k.ended_at, k.id is null as staged
        from (select s.id from flow_held s where s.id = x.id offset 0) s
        full join (select o.id, o.state, o.ended_at from flow_node o where o.id = x.id offset 0) k on k.id = s.id
        where m.id is null and d.id is null and r.outcome is null and h.outcome is null offset 0) n on true
    order by x.ordinal
$$;

-- For how long a message's headers ask to keep its result; null: not at all. Anybody can write any headers, so what is
-- no number is nothing, and ten years are the longest.
create or replace function "laneway".keep_result_v1(p_headers jsonb)
returns interval
language sql immutable
return case when jsonb_typeof(p_headers -> 'laneway-keep-result') = 'number' then
    least(greatest((p_headers ->> 'laneway-keep-result')::numeric, 0), 315360000)::double precision * interval '1 second' end;

-- Part of cancel, upkeep and discard: how messages ended that no handler ended, if their results were to be kept.
-- Null arrays: none of them was.
create or replace function "laneway".keep_ended_v1(
    p_ids bigint[], p_queues text[], p_channels text[], p_kinds text[], p_keeps interval[],
    p_outcome text, p_reasons text[], p_error_types text[], p_errors text[], p_now timestamptz
) returns void
language plpgsql
as $$
begin
    if p_ids is null then
        return;
    end if;
    insert into result (message_id, ended_at, expires_at, queue, channel, kind, outcome, reason, error_type, error)
    select x.id, p_now, p_now + x.keep, x.queue, x.channel, x.kind, p_outcome, x.reason, x.error_type, x.error
    from unnest(p_ids, p_queues, p_channels, p_kinds, p_keeps, p_reasons, p_error_types, p_errors)
        x(id, queue, channel, kind, keep, reason, error_type, error)
    on conflict (message_id) do nothing;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array['kept results'], p_now);
    end if;
end
$$;

-- complete with results: as complete_v1, and keeps what the handlers returned, in the same transaction.
--
-- Keeps: a result is stored if and only if this call ended its message, under the fence it came with.
-- p_kept_*: the messages whose results are kept, with their fences, for how long, and the results: content type
-- and bytes, null for an outcome without one.
create or replace function "laneway".complete_kept_v1(
    p_ids bigint[], p_fences bigint[], p_kept_ids bigint[], p_kept_fences bigint[], p_keeps interval[],
    p_content_types text[], p_payloads bytea[],
    p_now timestamptz default null, p_waited jsonb default null, p_outcome text default 'completed'
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_ids bigint[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
    v_lost bigint[];
    v_lost_fences bigint[];
begin
    perform check_lengths_v1('time to keep a result', p_keeps), check_content_types_v1(p_content_types),
        check_payloads_v1('result', p_payloads);
    -- Read before they are deleted; none of these columns ever changes.
    select array_agg(m.id), array_agg(m.queue), array_agg(m.channel), array_agg(m.kind)
    into v_ids, v_queues, v_channels, v_kinds
    from message m where m.id = any(p_kept_ids);
    select array_agg(c.id), array_agg(c.fence) into v_lost, v_lost_fences
    from complete_v1(p_ids, p_fences, v_now, p_waited, p_outcome) c;

    insert into result (message_id, ended_at, expires_at, queue, channel, kind, outcome, content_type, payload)
    select distinct on (k.id) k.id, v_now, v_now + k.keep, m.queue, m.channel, m.kind, p_outcome, k.content_type, k.payload
    from unnest(p_kept_ids, p_kept_fences, p_keeps, p_content_types, p_payloads) k(id, fence, keep, content_type, payload)
    join unnest(v_ids, v_queues, v_channels, v_kinds) m(id, queue, channel, kind) on m.id = k.id
    where not exists (select from unnest(v_lost, v_lost_fences) l(id, fence) where l.id = k.id and l.fence = k.fence)
    on conflict (message_id) do nothing;

    if exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array['kept results'], v_now);
    end if;
    return query select x.id, x.fence, 'lost' from unnest(v_lost, v_lost_fences) x(id, fence);
end
$$;

-- extend with notes of progress: as extend_v1, in the same statement.
create or replace function "laneway".extend_progress_v1(
    p_ids bigint[], p_fences bigint[], p_lengths interval[],
    p_note_ids bigint[], p_note_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text, until timestamptz)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
begin
    perform check_numbers_v1('progress', p_shares, 0, 1);
    return query select e.id, e.fence, e.status, e.until from extend_v1(p_ids, p_fences, p_lengths, v_now) e;
    -- The leases that are held are locked now; note_progress_v1 looks for them.
    perform note_progress_v1(p_note_ids, p_note_fences, p_shares, p_notes, v_now);
end
$$;

-- hold with notes of progress: as hold_v1, in the same statement. Waits for nobody.
create or replace function "laneway".hold_progress_v1(
    p_ids bigint[], p_fences bigint[], p_length interval,
    p_note_ids bigint[], p_note_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
begin
    perform check_numbers_v1('progress', p_shares, 0, 1);
    return query select h.id, h.fence, h.status from hold_v1(p_ids, p_fences, p_length, v_now) h;
    perform note_progress_v1(p_note_ids, p_note_fences, p_shares, p_notes, v_now);
end
$$;

-- Part of extend and hold: what holders say about their messages, if they hold them under this fence. A note of
-- an earlier lease never replaces that of a later one.
create or replace function "laneway".note_progress_v1(
    p_ids bigint[], p_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz
) returns void
language sql
set search_path = "laneway", pg_temp
as $$
    insert into progress as p (message_id, fence, at, share, note)
    select distinct on (x.id) x.id, x.fence, p_now, x.share, left(x.note, 500)
    from unnest(p_ids, p_fences, p_shares, p_notes) x(id, fence, share, note)
    where exists (select from lease k where k.message_id = x.id and k.fence = x.fence)
    order by x.id, x.fence desc
    on conflict (message_id) do update set fence = excluded.fence, at = excluded.at, share = excluded.share, note = excluded.note
    where p.fence <= excluded.fence
$$;

-- Part of upkeep: delete results that are no longer kept, and what holders said whose leases are gone.
create or replace function "laneway".cleanup_results_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint := 0;
begin
    if exists (select from result r where r.expires_at <= v_now) then
        delete from result r where r.message_id = any(array(
            select k.message_id from result k where k.expires_at <= v_now
            order by k.expires_at limit p_limit for update skip locked));
        get diagnostics v_done = row_count;
    end if;
    -- Who still holds a lease has said something lately, or is looked up here.
    if exists (select from progress p where p.at < v_now - interval '1 minute') then
        delete from progress p where p.message_id = any(array(
            select k.message_id from progress k where k.at < v_now - interval '1 minute'
                and not exists (select from lease l where l.message_id = k.message_id and l.fence = k.fence offset 0)
            order by k.at limit p_limit));
        get diagnostics v_count = row_count;
    end if;
    return v_done + v_count;
end
$$;

-- What the holders of leased messages said last about how far they are.
create view "laneway".progress_v1 as
select p.message_id, p.fence, p.at, p.share, p.note
from "laneway".progress p join "laneway".lease l on l.message_id = p.message_id and l.fence = p.fence;
