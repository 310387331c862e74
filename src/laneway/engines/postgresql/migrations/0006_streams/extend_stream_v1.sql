-- extend a stream: hold every lease of its batches for p_lease from now on; never shortens one.
-- Locks leases in id order. Answers how many are held, and how many were lost.
create or replace function "laneway".extend_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_lease interval, out held bigint, out lost bigint
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    with ours as materialized (
        select l.message_id
        from stream_item i join lease l on l.message_id = i.message_id and l.fence = i.fence
        where i.stream = p_stream
        order by l.message_id for update of l
    )
    update lease l set until = greatest(l.until, clock_timestamp() + p_lease)
    from ours o where l.message_id = o.message_id;
    get diagnostics held = row_count;
    lost := (select count(*) from stream_item i where i.stream = p_stream) - held;
end
$$;
