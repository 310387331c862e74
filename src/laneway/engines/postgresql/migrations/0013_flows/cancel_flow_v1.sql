-- cancel a flow: nothing more of it is released. Answers its nodes that are messages or dead letters now, which the caller
-- cancels and discards; no row if there is none, or no such flow.
--
-- Keeps: what was released before this is in the answer, nothing is released after it. Locks the flow, then its nodes in
-- order; they are read again once that is done.
create or replace function "laneway".cancel_flow_v1(p_flow_id bigint, p_now timestamptz default null)
returns table (id bigint, state text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ids bigint[];
begin
    update flow f set cancelled_at = v_now where f.id = p_flow_id and f.cancelled_at is null and f.ended_at is null;
    select array_agg(n.id) into v_ids
    from (
        select k.id, k.state from flow_node k where k.flow_id = p_flow_id and k.state = 'held'
        order by k.id for no key update
    ) n where n.state = 'held';
    if v_ids is not null then
        update flow_node n set state = 'cancelled', ended_at = v_now where n.id = any(v_ids);
        delete from flow_held h where h.id = any(v_ids);
        insert into flow_count (flow_id, held, failed) values (p_flow_id, -cardinality(v_ids), cardinality(v_ids));
    end if;
    return query
    select n.id, n.state from flow_node n where n.flow_id = p_flow_id and n.state in ('live', 'dead') order by n.id;
end
$$;
