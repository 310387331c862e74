-- open: take over a stream. Its earlier owner is refused from now on. Answers the epoch to pass to the
-- other verbs, and the query that the stream's batches belong to.
create or replace function "laneway".open_stream_v1(
    p_stream text, p_lease interval, out epoch bigint, out query text
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
begin
    perform pg_advisory_xact_lock(hashtextextended(current_schema() || '.stream.' || p_stream, 0));
    insert into stream as s (name, epoch, query) values (p_stream, 1, '')
    on conflict (name) do update set epoch = s.epoch + 1, opened_at = clock_timestamp()
    returning s.epoch, s.query into epoch, query;
    perform extend_stream_v1(p_stream, epoch, query, p_lease);
end
$$;
