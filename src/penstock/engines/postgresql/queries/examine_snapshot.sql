-- Who keeps the oldest snapshot: sessions, slots, prepared transactions; ours is not counted. A
-- session of another role hides its start and state from those who may not see them.
select who, started, transactions
from (
    select format('process %s of %s%s%s', pid, coalesce(usename, '?'),
            case when application_name <> '' then format(' (%s)', application_name) end,
            case when state is not null then format(', %s', state) end) as who,
        coalesce(xact_start, backend_start) as started, CAST(age(backend_xmin) AS bigint) as transactions
    from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid()
    union all
    select format('replication slot %s', slot_name), null,
        CAST(greatest(age(xmin), age(catalog_xmin)) AS bigint)
    from pg_replication_slots where xmin is not null or catalog_xmin is not null
    union all
    select format('prepared transaction %s', gid), prepared, CAST(age(transaction) AS bigint)
    from pg_prepared_xacts
) s
order by transactions desc, started
limit 1
