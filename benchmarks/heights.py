"""How deep the B-trees are: a look-up reads one page a level."""

import psycopg

_INDEXES = """
    select c.relname, pg_read_binary_file(pg_relation_filepath(c.oid), 36, 4)
    from pg_class c join pg_am a on a.oid = c.relam
    where c.relkind = 'i' and a.amname = 'btree' and c.relnamespace = 'laneway'::regnamespace
        and pg_relation_size(c.oid) > 0"""


def heights(url: str) -> dict[str, int]:
    """The level of the root of each index, 0 for a tree of one page.

    The metapage is read from disk, after a checkpoint: measure first.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("checkpoint")
        rows = connection.execute(_INDEXES).fetchall()
    return {name: int.from_bytes(level, "little") for name, level in rows}


def grown(now: dict[str, int], before: dict[str, int]) -> list[str]:
    """The indexes that are deeper than they were."""
    return [
        f"{name} {before.get(name, 0)}→{level}"
        for name, level in sorted(now.items())
        if level > before.get(name, 0)
    ]
