-- name: roles
-- Roles and their rights. Run by the owner of the schema, after install and after every upgrade; safe to
-- repeat. producer: publish. consumer: also claim and settle. viewer: read all but payloads. admin: all.
--
-- Verbs run with the owner's rights, so nobody else needs rights on the tables. Each of them has a fixed
-- search_path that ends in pg_temp, so that objects which a caller creates are never found first.
do $$
declare
    v_other text;
begin
    -- A role that can create objects in the schema, or owns some, could have functions with our rights use them.
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
    where n.oid = '"laneway"'::regnamespace
        and o.role <> (select p.proowner from pg_proc p where p.oid = '"laneway".publish_v1'::regproc)
    limit 1;
    if found then
        raise exception '% may create objects in this schema, or owns some, and does not own Laneway''s functions', v_other
            using errcode = '42501',
            hint = 'Let one role own the schema and everything in it, revoke create on it from others, and try again.';
    end if;

    if not exists (select from pg_roles where rolname = '"laneway_producer"') then create role "laneway_producer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"laneway_consumer"') then create role "laneway_consumer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"laneway_viewer"') then create role "laneway_viewer" nologin; end if;
    if not exists (select from pg_roles where rolname = '"laneway_admin"') then create role "laneway_admin" nologin; end if;
    if not pg_has_role('"laneway_consumer"', '"laneway_producer"', 'member') then grant "laneway_producer" to "laneway_consumer"; end if;
    if not pg_has_role('"laneway_admin"', '"laneway_consumer"', 'member') then grant "laneway_consumer" to "laneway_admin"; end if;
    if not pg_has_role('"laneway_admin"', '"laneway_viewer"', 'member') then grant "laneway_viewer" to "laneway_admin"; end if;
end
$$;

-- Revoke everything first, so that what an older version granted does not stay.
revoke all on schema "laneway" from public, "laneway_producer", "laneway_consumer", "laneway_viewer", "laneway_admin";
revoke all on all tables in schema "laneway" from public, "laneway_producer", "laneway_consumer", "laneway_viewer", "laneway_admin";
revoke all on all sequences in schema "laneway" from public, "laneway_producer", "laneway_consumer", "laneway_viewer", "laneway_admin";
revoke all on all functions in schema "laneway" from public, "laneway_producer", "laneway_consumer", "laneway_viewer", "laneway_admin";

alter function "laneway".publish_v1 security definer;
alter function "laneway".replace_v1 security definer;
alter function "laneway".subscribers_v1 security definer;
alter function "laneway".publish_topic_v1 security definer;
alter function "laneway".publish_flow_v1 security definer;
alter function "laneway".stage_nodes_v1 security definer;
alter function "laneway".parents_v1 security definer;
alter function "laneway".cancel_flow_v1 security definer;
alter function "laneway".claim_v1 security definer;
alter function "laneway".by_kind_v1 security definer;
alter function "laneway".admit_v1 security definer;
alter function "laneway".start_limited_v1 security definer;
alter function "laneway".sweep_limited_v1 security definer;
alter function "laneway".set_shared_limit_v1 security definer;
alter function "laneway".rest_shared_limit_v1 security definer;
alter function "laneway".note_limits_v1 security definer;
alter function "laneway".remove_shared_limit_v1 security definer;
alter function "laneway".shared_limits_v1 security definer;
alter function "laneway".limited_channels_v1 security definer;
alter function "laneway".complete_v1 security definer;
alter function "laneway".complete_kept_v1 security definer;
alter function "laneway".extend_progress_v1 security definer;
alter function "laneway".hold_progress_v1 security definer;
alter function "laneway".endings_v1 security definer;
alter function "laneway".results_v1 security definer;
alter function "laneway".defer_v1 security definer;
alter function "laneway".fail_v1 security definer;
alter function "laneway".extend_v1 security definer;
alter function "laneway".hold_v1 security definer;
alter function "laneway".give_back_v1 security definer;
alter function "laneway".once_v1 security definer;
alter function "laneway".sleep_v1 security definer;
alter function "laneway".free_dead_keys_v1 security definer;
alter function "laneway".upkeep_v1 security definer;
alter function "laneway".decide_left_v1 security definer;
alter function "laneway".worker_seen_v1 security definer;
alter function "laneway".worker_gone_v1 security definer;
alter function "laneway".count_v1 security definer;
alter function "laneway".look_queue_stats_v1 security definer;
alter function "laneway".look_channels_v1 security definer;
alter function "laneway".look_named_v1 security definer;
alter function "laneway".look_queues_v1 security definer;
alter function "laneway".channel_names_v1 security definer;
alter function "laneway".minutes_v1 security definer;
alter function "laneway".cancel_v1 security definer;
alter function "laneway".cancel_running_v1 security definer;
alter function "laneway".run_now_v1 security definer;
alter function "laneway".step_operation_v1 security definer;
alter function "laneway".set_policy_v1 security definer;
alter function "laneway".limit_v1 security definer;
alter function "laneway".pause_v1 security definer;
alter function "laneway".throttle_v1 security definer;
alter function "laneway".remove_v1 security definer;
alter function "laneway".pause_queue_v1 security definer;
alter function "laneway".resume_queue_v1 security definer;
alter function "laneway".set_fairness_v1 security definer;
alter function "laneway".time_ahead_v1 security definer;
alter function "laneway".redrive_v1 security definer;
alter function "laneway".discard_v1 security definer;
alter function "laneway".untold_dead_v1 security definer;
alter function "laneway".told_dead_v1 security definer;
alter function "laneway".waiting_work_v1 security definer;
alter function "laneway".look_expired_v1 security definer;
alter function "laneway".messages_v1 security definer;
alter function "laneway".listen_v1 security definer;
alter function "laneway".hear_v1 security definer;
alter function "laneway".unlisten_v1 security definer;

grant usage on schema "laneway" to "laneway_producer", "laneway_viewer";
grant select on "laneway".migration to "laneway_producer", "laneway_viewer";

grant execute on function "laneway".publish_v1, "laneway".replace_v1, "laneway".publish_topic_v1, "laneway".subscribers_v1,
    "laneway".publish_flow_v1 to "laneway_producer";
-- What handlers returned is as secret as what they were given.
grant execute on function "laneway".results_v1 to "laneway_consumer";

grant execute on function "laneway".claim_v1, "laneway".by_kind_v1, "laneway".complete_v1, "laneway".complete_kept_v1, "laneway".extend_progress_v1, "laneway".hold_progress_v1, "laneway".defer_v1, "laneway".fail_v1,
    "laneway".extend_v1, "laneway".hold_v1, "laneway".give_back_v1, "laneway".once_v1, "laneway".sleep_v1,
    "laneway".notify_channel_v1, "laneway".upkeep_v1, "laneway".decide_left_v1, "laneway".count_v1, "laneway".worker_seen_v1,
    "laneway".worker_gone_v1, "laneway".free_dead_keys_v1, "laneway".step_operation_v1,
    "laneway".stage_nodes_v1, "laneway".parents_v1, "laneway".throttle_v1, "laneway".admit_v1, "laneway".start_limited_v1, "laneway".sweep_limited_v1,
    "laneway".rest_shared_limit_v1, "laneway".note_limits_v1, "laneway".untold_dead_v1, "laneway".told_dead_v1
    to "laneway_consumer";
-- To fire due schedules; these hold payloads.
grant select, update (next_at, look_at, last_at, fired, error) on "laneway".schedule to "laneway_consumer";
grant select on "laneway".schedule_v1, "laneway".worker_v1 to "laneway_consumer";

grant execute on function "laneway".look_queue_stats_v1, "laneway".look_channels_v1, "laneway".look_named_v1,
    "laneway".look_queues_v1, "laneway".channel_names_v1, "laneway".minutes_v1, "laneway".shared_limits_v1,
    "laneway".limited_channels_v1, "laneway".time_ahead_v1 to "laneway_viewer";
grant select on "laneway".minute_v1, "laneway".progress_v1 to "laneway_viewer";
grant execute on function "laneway".waiting_work_v1, "laneway".look_expired_v1, "laneway".messages_v1, "laneway".endings_v1, "laneway".listen_v1, "laneway".hear_v1, "laneway".unlisten_v1,
    "laneway".notify_channel_v1, "laneway".sleep_v1 to "laneway_viewer";
grant select on "laneway".history_v1, "laneway".channel_v1, "laneway".channel_stats_v1,
    "laneway".queue_stats_v1, "laneway".subscription_v1, "laneway".setting, "laneway".message_id, "laneway".worker_v1,
    "laneway".pause, "laneway".pause_v1, "laneway".fair_queue, "laneway".operation, "laneway".flow_v1, "laneway".flow_node_v1,
    "laneway".flow_edge_v1, "laneway".flow_dead_v1,
    "laneway".history_id, "laneway".server_life, "laneway".history_reader to "laneway_viewer";
-- All columns but the payload.
grant select (id, queue, channel, kind, key, priority, due, published_at, first_published_at, expires_at, attempt,
    max_attempts, content_type, headers, payload_size, state, fence, worker, claimed_at, until)
    on "laneway".message_v1 to "laneway_viewer";
grant select (id, queue, channel, kind, key, priority, died_at, published_at, first_published_at, attempt, max_attempts,
    content_type, headers, payload_size, reason, error_type, error, traceback)
    on "laneway".dead_letter_v1 to "laneway_viewer";

grant execute on function "laneway".cancel_v1, "laneway".cancel_running_v1, "laneway".set_policy_v1, "laneway".limit_v1, "laneway".pause_v1,
    "laneway".remove_v1, "laneway".redrive_v1, "laneway".discard_v1, "laneway".pause_queue_v1,
    "laneway".resume_queue_v1, "laneway".set_fairness_v1, "laneway".set_shared_limit_v1, "laneway".remove_shared_limit_v1, "laneway".run_now_v1, "laneway".cancel_flow_v1 to "laneway_admin";
grant select on "laneway".message_v1, "laneway".dead_letter_v1, "laneway".schedule_v1 to "laneway_admin";
grant select, insert, update, delete on "laneway".schedule, "laneway".subscription to "laneway_admin";
grant usage on "laneway".schedule_revision to "laneway_admin";
-- Before numbers of schedules and operations are taken.
grant execute on function "laneway".server_life_v1, "laneway".begin_server_life_v1 to "laneway_admin";
grant update on "laneway".setting to "laneway_admin";
grant select, insert on "laneway".audit to "laneway_admin";
grant select, insert, update on "laneway".operation to "laneway_admin";

-- name: partition
-- Part of the script: the first partitions of the history.
select "laneway".partition_v1()

-- name: migration_lock
-- One process at a time migrates a schema. $1: schema.
-- Nothing here gives up: whoever migrates may take long.
select set_config('lock_timeout', '0', true),
    CAST(pg_advisory_xact_lock(hashtextextended('laneway.migrate.' || CAST($1 AS text), 0)) AS text)

-- name: guarded
-- Around the script of one migration ($3), of this number ($1), for those who run it by hand or with a tool of
-- their own: nothing if it was applied. $2: schema.
declare
    v_applied integer;
begin
    perform pg_advisory_xact_lock(hashtextextended('laneway.migrate.' || $2, 0));
    if to_regclass('"laneway".migration') is not null then
        select max(number) into v_applied from "laneway".migration;
    end if;
    if v_applied >= $1 then
        return;
    end if;
    execute $3;
end

-- name: uninstall
-- Everything that install created, with its data. A schema that belongs to another role stays, empty.
do $$
declare
    v_schema regnamespace := to_regnamespace('"laneway"');
    v_drop text;
begin
    if v_schema is null then
        return;
    end if;
    if (select pg_has_role(n.nspowner, 'member') from pg_namespace n where n.oid = v_schema) then
        drop schema "laneway" cascade;
        return;
    end if;
    -- Views and functions first: what is left depends on nothing that is gone.
    for v_drop in
        select format('drop %s if exists %s cascade', d.kind, d.name)
        from (
            select 1 as step, 'view' as kind, c.oid::regclass::text as name
                from pg_class c where c.relnamespace = v_schema and c.relkind = 'v'
            union all
            select 2, case p.prokind when 'p' then 'procedure' else 'function' end, p.oid::regprocedure::text
                from pg_proc p where p.pronamespace = v_schema
            union all
            select 3, 'table', c.oid::regclass::text
                from pg_class c where c.relnamespace = v_schema and c.relkind in ('r', 'p')
            union all
            select 4, 'sequence', c.oid::regclass::text
                from pg_class c where c.relnamespace = v_schema and c.relkind = 'S'
            union all
            select 5, 'type', c.oid::regclass::text
                from pg_class c where c.relnamespace = v_schema and c.relkind = 'c'
        ) d
        order by d.step
    loop
        execute v_drop;
    end loop;
end
$$

-- name: migration_exists
-- $1: schema.
select exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = CAST($1 AS text) and c.relname = 'migration')

-- name: migration_number
select coalesce(max(number), 0) from "laneway".migration

-- name: takes_writes
select not pg_is_in_recovery()

-- name: roles_prefix
-- $1: schema. The prefix of the installed roles: the producer's name without its suffix.
select left(r.rolname, -length('_producer'))
from pg_namespace n
cross join lateral aclexplode(n.nspacl) a
join pg_roles r on r.oid = a.grantee
where n.nspname = CAST($1 AS text) and a.privilege_type = 'USAGE' and r.rolname like '%\_producer'

-- name: migration_note
-- Part of the script; $1 and $2 are replaced by literals.
insert into "laneway".migration (number, name) values ($1, $2)

-- name: shape
-- What is in a schema.
-- All that is in the schema, with the bodies of functions, what views say, the defaults of columns and the
-- checks of tables. $1: schema. An index that is not valid is as good as none.
select 'function', CAST(proname AS text), prosrc
    from pg_proc
    where pronamespace = (select oid from pg_namespace where nspname = $1)
union all
select
    case c.relkind
        when 'r' then 'table' when 'p' then 'table' when 'v' then 'view' when 'S' then 'sequence'
        when 'c' then 'type' else 'index'
    end, CAST(c.relname AS text), case when c.relkind = 'v' then pg_get_viewdef(c.oid) end
    from pg_class c
    left join pg_index i on i.indexrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1)
        and c.relkind in ('r', 'p', 'v', 'S', 'c', 'i', 'I') and coalesce(i.indisvalid, true)
union all
select 'column', c.relname || '.' || a.attname, pg_get_expr(d.adbin, d.adrelid)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum and a.attgenerated = ''
    where c.relnamespace = (select oid from pg_namespace where nspname = $1)
        and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
union all
select 'primary key', CAST(c.relname AS text), null
    from pg_class c
    join pg_constraint k on k.conrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1) and k.contype = 'p'
union all
select 'check', CAST(c.relname AS text), pg_get_constraintdef(k.oid)
    from pg_class c
    join pg_constraint k on k.conrelid = c.oid
    where c.relnamespace = (select oid from pg_namespace where nspname = $1) and k.contype = 'c'
