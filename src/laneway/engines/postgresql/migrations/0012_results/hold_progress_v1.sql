-- hold with notes of progress: as hold_v1, in the same statement. Waits for nobody.
create or replace function "laneway".hold_progress_v1(
    p_ids bigint[], p_fences bigint[], p_length interval,
    p_note_ids bigint[], p_note_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query select h.id, h.fence, h.status from hold_v1(p_ids, p_fences, p_length, v_now) h;
    perform note_progress_v1(p_note_ids, p_note_fences, p_shares, p_notes, v_now);
end
$$;
