-- Claims of some kinds only: docs/decisions/0016-claims-by-kind.md. In queues that nobody claims by kind all
-- three tables stay empty, and no verb reads or writes them.

-- Queues that are claimed by kind. What waited before the first such claim is moved in steps, by message id:
-- moved_to is the last id that was looked at, move_end the last one that there was. ready: all is moved, the
-- lanes are there. (The state counts these queues.)
create table "laneway_kind_queue" (
    queue text primary key,
    moved_to integer not null,
    move_end integer not null,
    ready integer not null
) without rowid;

-- What waits in such queues, a second time: by kind.
create table "laneway_kind_waiting" (
    channel_id integer not null,
    kind text not null,
    priority integer not null,
    due integer not null,
    message_id integer not null,
    expires_at integer,
    primary key (channel_id, kind, priority, due, message_id)
) without rowid;

-- One row for each kind of which messages wait in a channel. Its columns are what those of the same names are
-- to a channel, for claims of this kind; limits are the channel's.
create table "laneway_lane" (
    channel_id integer not null,
    kind text not null,
    queue text not null,
    waiting integer not null,
    bands integer not null,
    next_due integer,
    credit real not null default 0,
    skips integer not null default 0,
    turn integer,
    wake_at integer,
    primary key (channel_id, kind)
) without rowid;
create index "laneway_lane_ring" on "laneway_lane" (queue, kind, turn) where turn is not null;
create index "laneway_lane_alarm" on "laneway_lane" (queue, kind, wake_at) where wake_at is not null;
create index "laneway_lane_parked" on "laneway_lane" (queue, kind, next_due) where turn is null;
