-- The lake's catalog: which part of the history is in which files, and whether that was verified.
--
-- A batch is a range of (xid, id), fixed before anything of it is written; writing it again gives the
-- same files. States: planned -> written -> verified -> purged; a batch whose files turn out to be
-- damaged goes back to planned. Checksums are sums over rows, so those of files and batches add up.
create table "laneway".lake_commit (
    lake text collate "C" not null,
    batch bigint not null,
    from_xid bigint not null,
    from_id bigint not null,
    to_xid bigint not null,
    to_id bigint not null,
    rows bigint not null,
    checksum numeric not null,
    first_ended_at timestamptz not null,
    last_ended_at timestamptz not null,
    state text not null default 'planned' check (state in ('planned', 'written', 'verified', 'purged')),
    planned_at timestamptz not null default clock_timestamp(),
    written_at timestamptz,
    verified_at timestamptz,
    purged_at timestamptz,
    primary key (lake, batch)
);

-- One row per file that belongs to a lake; a file without a row is a leftover. A compacted file holds
-- several batches; while staged is set, it lies there and the files it replaces may still exist.
create table "laneway".lake_file (
    lake text collate "C" not null,
    path text collate "C" not null,
    day date not null,
    batches bigint[] not null,
    rows bigint not null,
    checksum numeric not null,
    size bigint not null,
    staged text,
    replaces text[],
    primary key (lake, path)
);

-- Who else reads the history, and how far they are: what they have not read is not purged.
create table "laneway".history_reader (
    name text collate "C" primary key,
    xid bigint not null,
    id bigint not null,
    seen_at timestamptz not null default clock_timestamp()
);
