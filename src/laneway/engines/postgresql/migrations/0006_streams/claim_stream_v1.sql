-- claim for a stream: take messages under leases as claim_v1 does, by its rules, and seal them as batch
-- p_seq. A batch that was sealed before is answered as it is ('sealed').
--
-- Keeps: only the stream's present owner claims; a batch is sealed in the transaction that claims it.
-- p_floors: claim_v1's memory, as the last call answered it (see the statement claim in claim.sql).
create or replace function "laneway".claim_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_seq bigint, p_queues text[], p_limit integer,
    p_lease interval, p_floors text default null,
    out n bigint, out answer text, out floors text
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    n := (select count(*) from stream_item i where i.stream = p_stream and i.seq = p_seq);
    if n > 0 or p_limit < 1 then
        answer := case when n > 0 then 'sealed' else 'empty' end;
        floors := p_floors;
        return;
    end if;
    with taken as materialized (
        select c.id, c.fence, c.answer, row_number() over () as place,
            case when c.id is null then json_build_array(
                c.turn_floor, c.wake_floor, coalesce(c.open_xids, '{}'), coalesce(c.open_turns, '{}'),
                coalesce(c.open_wakes, '{}'), c.contended)::text end as floors
        from claim_v1(
            p_queues, p_limit, p_lease, 'stream ' || p_stream,
            p_turn_floor => (p_floors::json ->> 0)::timestamptz,
            p_wake_floor => (p_floors::json ->> 1)::timestamptz,
            p_open_xids => array(select x::bigint from json_array_elements_text(p_floors::json -> 2) x),
            p_open_turns => array(select x::timestamptz from json_array_elements_text(p_floors::json -> 3) x),
            p_open_wakes => array(select x::timestamptz from json_array_elements_text(p_floors::json -> 4) x),
            p_contended => coalesce((p_floors::json ->> 5)::boolean, false)) c
    ),
    sealed as (
        insert into stream_item (stream, seq, place, message_id, fence)
        select p_stream, p_seq, t.place, t.id, t.fence from taken t where t.id is not null
    )
    select count(t.id), max(t.answer), max(t.floors) into n, answer, floors from taken t;
end
$$;
