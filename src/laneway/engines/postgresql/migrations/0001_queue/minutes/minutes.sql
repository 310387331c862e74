-- minutes: what upkeep has counted, added up by steps of whole minutes; see laneway.operations.Minute. p_by keeps
-- queues ('queue') or queues and kinds ('kind') apart. Reads hours where the steps are whole hours.
create or replace function "laneway".minutes_v1(
    p_queue text, p_kind text, p_since timestamptz, p_until timestamptz, p_step interval, p_by text
) returns table (
    at timestamptz, queue text, kind text, published bigint, started bigint, completed bigint, retried bigint,
    failed bigint, expired bigint, deferred bigint, given_back bigint, cancelled bigint, lapsed bigint, redriven bigint,
    discarded bigint, dead bigint, waits bigint[], runs bigint[], depth bigint, oldest timestamptz, exact boolean
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_zero constant timestamptz := '1970-01-01 00:00:00 UTC';
    v_span smallint := case when mod(extract(epoch from p_step), 3600) = 0 then 60 else 1 end;
    v_from timestamptz := date_bin(p_step, p_since, v_zero);
    -- The last step is one that begins before p_until, and it is whole.
    v_to timestamptz := date_bin(p_step, p_until - interval '1 microsecond', v_zero) + p_step;
begin
    return query
    with row as not materialized (
        select date_bin(p_step, m.at, v_zero) as step, m.*
        from minute m
        where m.span = v_span and m.at >= v_from and m.at < v_to
            and (m.queue = '' and m.kind = '' or (p_queue is null or m.queue = p_queue) and (p_kind is null or m.kind = p_kind))
    ),
    -- When depths were noted last in each step.
    noted as (
        select r.step, max(r.at) as at from row r where r.queue = '' group by r.step
    )
    select r.step, case when p_by is null then p_queue else r.queue end,
        case when p_by = 'kind' then r.kind else p_kind end,
        sum(r.published)::bigint, sum(r.started)::bigint, sum(r.completed)::bigint, sum(r.retried)::bigint,
        sum(r.failed)::bigint, sum(r.expired)::bigint, sum(r.deferred)::bigint, sum(r.given_back)::bigint,
        sum(r.cancelled)::bigint, sum(r.lapsed)::bigint, sum(r.redriven)::bigint, sum(r.discarded)::bigint,
        sum(r.dead)::bigint,
        case when count(r.waits) > 0 then array[
            sum(r.waits[1]), sum(r.waits[2]), sum(r.waits[3]), sum(r.waits[4]), sum(r.waits[5]),
            sum(r.waits[6]), sum(r.waits[7]), sum(r.waits[8]), sum(r.waits[9]), sum(r.waits[10]),
            sum(r.waits[11]), sum(r.waits[12]), sum(r.waits[13])]::bigint[] end,
        case when count(r.runs) > 0 then array[
            sum(r.runs[1]), sum(r.runs[2]), sum(r.runs[3]), sum(r.runs[4]), sum(r.runs[5]),
            sum(r.runs[6]), sum(r.runs[7]), sum(r.runs[8]), sum(r.runs[9]), sum(r.runs[10]),
            sum(r.runs[11]), sum(r.runs[12]), sum(r.runs[13])]::bigint[] end,
        case when count(n.at) > 0 then coalesce(sum(r.depth) filter (where r.at = n.at), 0)::bigint end,
        min(r.oldest) filter (where r.at = n.at), bool_and(r.exact)
    from row r left join noted n on n.step = r.step
    where p_by is null or r.queue <> ''
    group by 1, 2, 3
    order by 1, 2, 3;
end
$$;

-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
create view "laneway".minute_v1 as
select m.at, m.queue, m.kind, m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred,
    m.given_back, m.cancelled, m.lapsed, m.redriven, m.discarded, m.dead, m.waits, m.runs, m.depth, m.oldest, m.exact
from "laneway".minute m where m.span = 1 and m.queue <> '';
