-- begin: the stream starts without a checkpoint. What an earlier query left in batches that nobody
-- will ask for again goes back to its channels. Locks items, then leases: what a task takes over at
-- this moment (take_stream_v1) is either its own or given back.
create or replace function "laneway".begin_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_new_query text
) returns bigint
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    perform 1 from stream_item i where i.stream = p_stream order by i.seq, i.place for update;
    select array_agg(l.message_id), array_agg(l.fence) into v_ids, v_fences
    from stream_item i join lease l on l.message_id = i.message_id and l.fence = i.fence
    where i.stream = p_stream;
    if v_ids is not null then
        perform give_back_v1(v_ids, v_fences);
    end if;
    delete from stream_item i where i.stream = p_stream;
    update stream s set query = p_new_query where s.name = p_stream;
    return coalesce(cardinality(v_ids), 0);
end
$$;
