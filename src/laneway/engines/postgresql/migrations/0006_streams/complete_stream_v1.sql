-- complete for a stream: the batches up to p_through are safe elsewhere; their messages end.
--
-- Keeps: only the stream's present owner completes, and only what its leases still hold: the others
-- are lost and recorded as every late completion is. Safe to repeat. Locks items,
-- then leases: what a task takes over at this moment (take_stream_v1) is either its own or completed.
create or replace function "laneway".complete_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_through bigint, out completed bigint, out lost bigint
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    perform 1 from stream_item i where i.stream = p_stream and i.seq <= p_through order by i.seq, i.place for update;
    select array_agg(i.message_id), array_agg(i.fence) into v_ids, v_fences
    from stream_item i where i.stream = p_stream and i.seq <= p_through;
    completed := 0;
    lost := 0;
    if v_ids is null then
        return;
    end if;
    lost := (select count(*) from complete_v1(v_ids, v_fences));
    completed := cardinality(v_ids) - lost;
    delete from stream_item i where i.stream = p_stream and i.seq <= p_through;
end
$$;
