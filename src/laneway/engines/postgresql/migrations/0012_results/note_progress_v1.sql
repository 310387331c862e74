-- Part of extend and hold: what holders say about their messages, if they hold them under this fence. A note of
-- an earlier lease never replaces that of a later one.
create or replace function "laneway".note_progress_v1(
    p_ids bigint[], p_fences bigint[], p_shares double precision[], p_notes text[], p_now timestamptz
) returns void
language sql
set search_path = "laneway", pg_temp
as $$
    insert into progress as p (message_id, fence, at, share, note)
    select distinct on (x.id) x.id, x.fence, p_now, x.share, left(x.note, 500)
    from unnest(p_ids, p_fences, p_shares, p_notes) x(id, fence, share, note)
    where exists (select from lease k where k.message_id = x.id and k.fence = x.fence)
    order by x.id, x.fence desc
    on conflict (message_id) do update set fence = excluded.fence, at = excluded.at, share = excluded.share, note = excluded.note
    where p.fence <= excluded.fence
$$;
