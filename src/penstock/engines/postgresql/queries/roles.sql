-- Who may do what. Run by the owner of the schema, after install and after every upgrade; safe to
-- repeat. producer: publish. consumer: that, and work. viewer: look, but at no payload. admin: all.
--
-- Verbs run with the owner's rights, so that nobody else needs any on the tables. Each of them has a
-- fixed search_path that ends in pg_temp: what a caller creates is never found first.
do $$
declare
    v_other text;
begin
    -- Whoever may create things in the schema, or has, could have them found by functions with our rights.
    select case when o.role = 0 then 'PUBLIC' else pg_get_userbyid(o.role)::text end into v_other
    from pg_namespace n
    cross join lateral (
        select n.nspowner as role
        union all
        select a.grantee from aclexplode(n.nspacl) a where a.privilege_type = 'CREATE'
        union all
        select p.proowner from pg_proc p where p.pronamespace = n.oid
        union all
        select c.relowner from pg_class c where c.relnamespace = n.oid
        union all
        select p.oprowner from pg_operator p where p.oprnamespace = n.oid
    ) o
    where n.oid = '"penstock"'::regnamespace
        and o.role <> (select p.proowner from pg_proc p where p.oid = '"penstock".publish_v1'::regproc)
    limit 1;
    if found then
        raise exception '% may create things in this schema, or owns some, and does not own Penstock''s functions', v_other
            using errcode = '42501',
            hint = 'Let one role own the schema and all in it, revoke create on it from others, and repeat this.';
    end if;

    if not exists (select from pg_roles where rolname = '"penstock_producer"') then create role "penstock_producer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"penstock_consumer"') then create role "penstock_consumer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"penstock_viewer"') then create role "penstock_viewer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"penstock_admin"') then create role "penstock_admin" nologin; end if;
    if not pg_has_role('"penstock_consumer"', '"penstock_producer"', 'member') then grant "penstock_producer" to "penstock_consumer"; end if;
    if not pg_has_role('"penstock_admin"', '"penstock_consumer"', 'member') then grant "penstock_consumer" to "penstock_admin"; end if;
    if not pg_has_role('"penstock_admin"', '"penstock_viewer"', 'member') then grant "penstock_viewer" to "penstock_admin"; end if;
end
$$;

-- From nothing, so that what an older version granted does not stay.
revoke all on schema "penstock" from public, "penstock_producer", "penstock_consumer", "penstock_viewer", "penstock_admin";
revoke all on all tables in schema "penstock" from public, "penstock_producer", "penstock_consumer", "penstock_viewer", "penstock_admin";
revoke all on all sequences in schema "penstock" from public, "penstock_producer", "penstock_consumer", "penstock_viewer", "penstock_admin";
revoke all on all functions in schema "penstock" from public, "penstock_producer", "penstock_consumer", "penstock_viewer", "penstock_admin";

alter function "penstock".publish_v1 security definer;
alter function "penstock".publish_topic_v1 security definer;
alter function "penstock".claim_v1 security definer;
alter function "penstock".complete_v1 security definer;
alter function "penstock".defer_v1 security definer;
alter function "penstock".fail_v1 security definer;
alter function "penstock".extend_v1 security definer;
alter function "penstock".hold_v1 security definer;
alter function "penstock".give_back_v1 security definer;
alter function "penstock".once_v1 security definer;
alter function "penstock".sleep_v1 security definer;
alter function "penstock".upkeep_v1 security definer;
alter function "penstock".cancel_v1 security definer;
alter function "penstock".set_policy_v1 security definer;
alter function "penstock".pause_v1 security definer;
alter function "penstock".remove_v1 security definer;
alter function "penstock".redrive_v1 security definer;
alter function "penstock".discard_v1 security definer;
alter function "penstock".messages_v1 security definer;
alter function "penstock".listen_v1 security definer;
alter function "penstock".hear_v1 security definer;
alter function "penstock".unlisten_v1 security definer;

grant usage on schema "penstock" to "penstock_producer", "penstock_viewer";
grant select on "penstock".migration to "penstock_producer", "penstock_viewer";

grant execute on function "penstock".publish_v1, "penstock".publish_topic_v1 to "penstock_producer";

grant execute on function "penstock".claim_v1, "penstock".complete_v1, "penstock".defer_v1, "penstock".fail_v1,
    "penstock".extend_v1, "penstock".hold_v1, "penstock".give_back_v1, "penstock".once_v1, "penstock".sleep_v1,
    "penstock".bell_v1, "penstock".upkeep_v1
    to "penstock_consumer";
-- To fire what is due; a schedule holds its payload.
grant select, update (next_at, look_at, last_at, fired, error) on "penstock".schedule to "penstock_consumer";
grant select on "penstock".schedule_v1 to "penstock_consumer";

grant execute on function "penstock".messages_v1, "penstock".listen_v1, "penstock".hear_v1, "penstock".unlisten_v1,
    "penstock".bell_v1, "penstock".sleep_v1 to "penstock_viewer";
grant select on "penstock".history_v1, "penstock".channel_v1, "penstock".channel_numbers_v1,
    "penstock".queue_numbers_v1, "penstock".subscription_v1, "penstock".setting, "penstock".message_id,
    "penstock".history_id to "penstock_viewer";
-- All columns but the payload.
grant select (id, queue, channel, kind, key, priority, due, published_at, first_published_at, expires_at, attempt,
    max_attempts, content_type, headers, payload_size, state, fence, worker, claimed_at, until)
    on "penstock".message_v1 to "penstock_viewer";
grant select (id, queue, channel, kind, key, priority, died_at, published_at, first_published_at, attempt, max_attempts,
    content_type, headers, payload_size, reason, error_type, error)
    on "penstock".dead_letter_v1 to "penstock_viewer";

grant execute on function "penstock".cancel_v1, "penstock".set_policy_v1, "penstock".pause_v1, "penstock".remove_v1,
    "penstock".redrive_v1, "penstock".discard_v1 to "penstock_admin";
grant select on "penstock".message_v1, "penstock".dead_letter_v1, "penstock".schedule_v1 to "penstock_admin";
grant select, insert, update, delete on "penstock".schedule, "penstock".subscription to "penstock_admin";
grant usage on "penstock".schedule_revision to "penstock_admin";
grant update on "penstock".setting to "penstock_admin";
