-- How messages ended, with those of flows; replaces the one of migration 12: one row each, in order; the outcome is null if the message has not ended. All is read in one
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
