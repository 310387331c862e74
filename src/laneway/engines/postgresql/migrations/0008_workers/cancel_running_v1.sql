-- cancel_running: cancel, and for leased messages a request to their holders.
--
-- Keeps: a request names a fence, so it never reaches a later holder. A lease that ends between the two
-- steps (its message waits again, or has ended) is looked at again. Answers as cancel does, with
-- 'requested' instead of 'leased'; 'leased' is left only for a message that changes hands all the time.
create or replace function "laneway".cancel_running_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_left bigint[] := p_ids;
    v_leased bigint[];
    v_asked bigint[];
begin
    for v_try in 1..5 loop
        v_leased := '{}';
        for id, status in select c.id, c.status from cancel_v1(v_left, p_now) c loop
            if status = 'leased' then
                v_leased := v_leased || id;
            else
                return next;
            end if;
        end loop;
        exit when v_leased = '{}';
        -- The message of a lease that somebody is ending now stays locked until then: not waited for.
        with held as (
            select l.message_id, l.fence, l.worker from lease l where l.message_id = any(v_leased)
        ),
        asked as (
            insert into cancel_request (message_id, fence, worker, requested_at)
            select h.message_id, h.fence, h.worker, coalesce(p_now, clock_timestamp()) from held h
            on conflict (message_id, fence) do nothing
        )
        select coalesce(array_agg(h.message_id), '{}') into v_asked from held h;
        return query select x.id, 'requested' from unnest(v_asked) x(id);
        v_left := array(select x.id from unnest(v_leased) x(id) where x.id <> all(v_asked));
        v_leased := v_left;
        exit when v_left = '{}';
    end loop;
    return query select x.id, 'leased' from unnest(v_leased) x(id);
end
$$;
