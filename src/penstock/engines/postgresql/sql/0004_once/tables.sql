-- What handlers have done already, by a key of their choice; kept until a time.
create table "penstock".done (
    queue text collate "C" not null,
    key text collate "C" not null,
    keep_until timestamptz not null,
    primary key (queue, key)
);
create index done_expiry on "penstock".done (keep_until);
