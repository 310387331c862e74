-- For how long a message's headers ask to keep its result; null: not at all. Anybody can write any headers, so what is
-- no number is nothing, and ten years are the longest.
create or replace function "laneway".keep_result_v1(p_headers jsonb)
returns interval
language sql immutable
return case when jsonb_typeof(p_headers -> 'laneway-keep-result') = 'number' then
    least(greatest((p_headers ->> 'laneway-keep-result')::numeric, 0), 315360000)::double precision * interval '1 second' end;
