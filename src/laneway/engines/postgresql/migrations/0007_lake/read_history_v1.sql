-- read history: a stream says how far it has read, so that nothing after that is purged. Null: it is gone.
create or replace function "laneway".read_history_v1(p_name text, p_xid bigint, p_id bigint default 0)
returns void
language sql
as $$
    delete from "laneway".history_reader r where r.name = p_name and p_xid is null;
    insert into "laneway".history_reader (name, xid, id)
    select p_name, p_xid, p_id where p_xid is not null
    on conflict (name) do update set xid = excluded.xid, id = excluded.id, seen_at = clock_timestamp()
$$;
