-- Part of every settling verb: answer and record the messages whose leases were lost, with the verb that
-- came too late. p_kept_ids/p_kept_fences: those that were still held.
create or replace function "laneway".report_lost_v1(
    p_ids bigint[], p_fences bigint[], p_kept_ids bigint[], p_kept_fences bigint[], p_verb text, p_now timestamptz
) returns table (id bigint, fence bigint, status text)
language plpgsql
set enable_hashjoin = on
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    select array_agg(x.id), array_agg(x.fence) into v_ids, v_fences
    from (
        select a.id, a.fence from unnest(p_ids, p_fences) a(id, fence)
        except
        select k.id, k.fence from unnest(p_kept_ids, p_kept_fences) k(id, fence)
    ) x;
    insert into history (message_id, fence, attempt, ended_at, terminal, dead, queue, channel, kind, outcome, reason)
    select x.id, coalesce(x.fence, 0), coalesce(m.attempt, 0), p_now, false, false,
        coalesce(m.queue, ''), coalesce(m.channel, ''), coalesce(m.kind, ''), 'stale', p_verb
    from unnest(v_ids, v_fences) x(id, fence)
    left join lateral (select k.* from message k where k.id = x.id offset 0) m on true
    where x.id is not null and (select s.history from setting s) <> 'none';
    return query select x.id, x.fence, 'lost' from unnest(v_ids, v_fences) x(id, fence);
end
$$;
