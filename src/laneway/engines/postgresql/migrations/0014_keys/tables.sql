-- Key modes: docs/decisions/0017-key-modes.md.
--
-- behind: a running message that had the key before; the key's message (message_id) waits until it has ended.
-- behind_due: when the key's message is due then.
alter table "laneway".dedupe add column if not exists behind bigint;
alter table "laneway".dedupe add column if not exists behind_due timestamptz;
