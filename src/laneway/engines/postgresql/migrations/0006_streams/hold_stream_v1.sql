-- Part of every verb of a stream: one at a time, and only for the process that opened it last.
--
-- The lock is an advisory one of the transaction: unlike a row's it takes no transaction number, which
-- claim_v1 needs for its floors, and an idle claim writes nothing.
create or replace function "laneway".hold_stream_v1(p_stream text, p_epoch bigint, p_query text)
returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_stream stream;
begin
    perform pg_advisory_xact_lock(hashtextextended(current_schema() || '.stream.' || p_stream, 0));
    select s.* into v_stream from stream s where s.name = p_stream;
    if v_stream.epoch is distinct from p_epoch then
        raise exception 'stream % was taken over by another query', p_stream
            using errcode = 'PNE01', hint = 'Run one query at a time under a stream''s name.';
    end if;
    if v_stream.query is distinct from p_query then
        raise exception 'the checkpoint is not the one of stream %', p_stream
            using errcode = 'PNE01', hint = 'Another query began this stream anew. Choose another name, or start without the checkpoint.';
    end if;
end
$$;
