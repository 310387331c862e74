-- step of a bulk operation: redrive or discard the next p_limit dead letters of a running one (of the
-- first if p_id is null), and note how far it is.
--
-- Keeps: the letters and the note are one transaction, so whoever goes on after a crash begins behind them.
-- Only letters that died until the operation began are taken. Locks the operation, skipping those that
-- others are at, then dead letters in id order. Looks at 5 * p_limit letters at most, or p_limit if all of them
-- match. Answers the operation, or nothing.
create or replace function "laneway".step_operation_v1(p_id bigint, p_limit integer, p_now timestamptz default null)
returns setof "laneway".operation
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    v_operation operation;
    v_queue text;
    v_channel text;
    v_kind text;
    v_reason text;
    v_error_type text;
    v_since timestamptz;
    v_until timestamptz;
    v_most integer;
    v_looked integer;
    v_all bigint[];
    v_times timestamptz[];
    v_last integer;
    v_ids bigint[];
    v_done bigint;
    v_ended boolean;
begin
    select o.* into v_operation from operation o
    where o.state = 'running' and (p_id is null or o.id = p_id)
    order by o.id limit 1 for update skip locked;
    if not found then
        return;
    end if;
    v_queue := v_operation.wanted ->> 'queue';
    v_channel := v_operation.wanted ->> 'channel';
    v_kind := v_operation.wanted ->> 'kind';
    v_reason := v_operation.wanted ->> 'reason';
    v_error_type := v_operation.wanted ->> 'error_type';
    v_since := coalesce((v_operation.wanted ->> 'since')::timestamptz, '-infinity');
    v_until := coalesce((v_operation.wanted ->> 'until')::timestamptz, 'infinity');
    -- A step that looks for a few among a million is as short as any other.
    v_most := case when coalesce(v_channel, v_kind, v_reason, v_error_type) is null then p_limit else 5 * p_limit end;
    if v_queue is null then
        select count(*), array_agg(x.id order by x.died_at, x.id), array_agg(x.died_at order by x.died_at, x.id),
            array_agg(x.id order by x.died_at, x.id) filter (where
            (v_channel is null or x.channel = v_channel) and (v_kind is null or x.kind = v_kind)
            and (v_reason is null or x.reason = v_reason) and (v_error_type is null or x.error_type = v_error_type))
        into v_looked, v_all, v_times, v_ids
        from (
            select d.id, d.died_at, d.channel, d.kind, d.reason, d.error_type from dead d
            where d.died_at >= v_since and d.died_at < v_until and d.died_at <= v_operation.started_at
                and (d.died_at, d.id) > (v_operation.died_at, v_operation.letter)
            order by d.died_at, d.id limit v_most
        ) x;
    else
        select count(*), array_agg(x.id order by x.died_at, x.id), array_agg(x.died_at order by x.died_at, x.id),
            array_agg(x.id order by x.died_at, x.id) filter (where
            (v_channel is null or x.channel = v_channel) and (v_kind is null or x.kind = v_kind)
            and (v_reason is null or x.reason = v_reason) and (v_error_type is null or x.error_type = v_error_type))
        into v_looked, v_all, v_times, v_ids
        from (
            select d.id, d.died_at, d.channel, d.kind, d.reason, d.error_type from dead d
            where d.queue = v_queue
                and d.died_at >= v_since and d.died_at < v_until and d.died_at <= v_operation.started_at
                and (d.died_at, d.id) > (v_operation.died_at, v_operation.letter)
            order by d.died_at, d.id limit v_most
        ) x;
    end if;
    v_ids := v_ids[1:p_limit];
    v_last := v_looked;
    if cardinality(v_ids) = p_limit then
        v_last := array_position(v_all, v_ids[p_limit]);
    end if;
    v_ended := v_looked < v_most and v_last = v_looked;
    -- As it was found: somebody else may have taken that letter since.
    v_operation.died_at := coalesce(v_times[v_last], v_operation.died_at);
    v_operation.letter := coalesce(v_all[v_last], v_operation.letter);
    if v_ids is not null then
        if v_operation.action = 'redrive' then
            v_done := (select count(*) from redrive_v1(
                v_ids, (v_operation.options ->> 'max_attempts')::integer,
                make_interval(secs => coalesce((v_operation.options ->> 'delay')::double precision, 0)), p_now));
        else
            v_done := (select count(*) from discard_v1(v_ids, p_now));
        end if;
    end if;
    return query
    update operation o set
        -- A letter may have died just before the operation began and have been seen just after.
        total = o.total + greatest(0, o.done + coalesce(v_done, 0) - o.total),
        done = o.done + coalesce(v_done, 0), died_at = v_operation.died_at, letter = v_operation.letter,
        state = case when v_ended then 'done' else o.state end,
        ended_at = case when v_ended then coalesce(p_now, clock_timestamp()) end
    where o.id = v_operation.id
    returning o.*;
end
$$;
