-- Keys of work that handlers have done already; kept until a time.
create table "laneway_done" (
    queue text not null,
    key text not null,
    keep_until integer not null,
    primary key (queue, key)
) without rowid;
create index "laneway_done_expiry" on "laneway_done" (keep_until);
