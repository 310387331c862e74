-- extend with notes of progress: as extend_v1, in the same statement.
create or replace function "laneway".extend_progress_v1(
    p_ids bigint[], p_fences bigint[], p_lengths interval[],
    p_note_ids bigint[], p_note_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text, until timestamptz)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query select e.id, e.fence, e.status, e.until from extend_v1(p_ids, p_fences, p_lengths, v_now) e;
    -- The leases that are held are locked now; note_progress_v1 looks for them.
    perform note_progress_v1(p_note_ids, p_note_fences, p_shares, p_notes, v_now);
end
$$;
