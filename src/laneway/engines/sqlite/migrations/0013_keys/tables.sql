-- Key modes: docs/decisions/0017-key-modes.md.
--
-- behind: a running message that had the key before; the key's message (message_id) waits until it has ended.
-- behind_due: when the key's message is due then.
alter table "laneway_dedupe" add column behind integer;
alter table "laneway_dedupe" add column behind_due integer;
