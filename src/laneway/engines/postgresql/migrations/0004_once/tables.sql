-- What handlers have done already, by a key that they choose; kept until a time.
create table "laneway".done (
    queue text collate "C" not null,
    key text collate "C" not null,
    keep_until timestamptz not null,
    primary key (queue, key)
);
create index done_expiry on "laneway".done (keep_until);
