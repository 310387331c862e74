-- Claims of some kinds only: docs/decisions/0016-claims-by-kind.md.
--
-- Queues from which somebody claims by kind. It has no index: while there is none the table has no pages,
-- so that the look of a publish or a claim reads none. settled: no wake without a lane can come any more;
-- horizon: a transaction number that is higher than those of all who did not see the row (see by_kind_v1).
create table "laneway".kind_queue (
    queue text collate "C" not null,
    horizon bigint,
    settled boolean not null default false
);

-- A message of such a queue, which is then also found by its kind.
alter table "laneway".message add column by_kind boolean;
create index message_kind on "laneway".message (channel_id, kind, priority, due, id) where by_kind;

-- Whom a wake concerns: '=' and a kind; '-' all kinds; '' all kinds, in a queue that is not claimed by kind.
alter table "laneway".wake add column lane text collate "C" not null default '';
create index wake_lane on "laneway".wake (queue, lane, at) where lane <> '';

-- Workers that sleep until a message of these kinds comes.
alter table "laneway".sleeper add column kinds text[] collate "C";

-- lanes: the lane of each position, null in queues that are not claimed by kind. slots: the lanes that have
-- work, sorted; the fourth is '*' if there are more than four. turns: when the turn of each came; the
-- token's own turn is the first of them.
alter table "laneway".token add column lanes text[] collate "C";
alter table "laneway".token add column slots text[] collate "C";
alter table "laneway".token add column turns timestamptz[];
create index token_slot1 on "laneway".token (queue, (slots[1]), (turns[1])) where slots[1] is not null and turns[1] is not null;
create index token_slot2 on "laneway".token (queue, (slots[2]), (turns[2])) where slots[2] is not null and turns[2] is not null;
create index token_slot3 on "laneway".token (queue, (slots[3]), (turns[3])) where slots[3] is not null and turns[3] is not null;
create index token_slot4 on "laneway".token (queue, (slots[4]), (turns[4])) where slots[4] is not null and turns[4] is not null;
-- Part of claim: what a token says of its lanes (claim_visit_kinds_v1).
create type "laneway".lanes_v1 as (lanes text[], pri smallint[], due timestamptz[], mid bigint[]);
create type "laneway".slots_v1 as (slots text[], turns timestamptz[]);
