-- What handlers have done already, by a key of their choice; kept until a time.
create table "penstock_done" (
    queue text not null,
    key text not null,
    keep_until integer not null,
    primary key (queue, key)
) without rowid;
create index "penstock_done_expiry" on "penstock_done" (keep_until);
