-- One process at a time migrates a schema. $1: schema.
select CAST(pg_advisory_xact_lock(hashtextextended('penstock.migrate.' || CAST($1 AS text), 0)) AS text)
