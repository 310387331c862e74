-- Part of looks: why a channel starts nothing at the moment, null if nothing holds it back. p_turn: when its turn comes.
create or replace function "laneway".waits_for_v1(
    p_queue text, p_paused boolean, p_throttled boolean, p_closing boolean, p_concurrency bigint, p_leased bigint, p_rate double precision, p_turn timestamptz,
    p_now timestamptz
) returns text
language sql stable
as $$
    select case
        when exists (
            select from "laneway".pause p where p.queue = p_queue and p.kind is null and (p.until is null or p.until > p_now))
            then 'queue paused'
        when p_paused then case when p_throttled then 'throttled' else 'paused' end
        when p_leased >= p_concurrency then 'concurrency'
        when p_rate is not null and p_turn > p_now then 'rate'
        when p_closing then 'closing' end
$$;
