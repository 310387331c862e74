"""Defects of what upkeep counts for operators: figures by minute, and kept counts."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, python, sql

MUTANTS: list[Mutant] = [
    sql("figures do not wait for open transactions", "minutes", "count_v1",
        ("exit when pg_snapshot_xmin(pg_current_snapshot())::text::bigint < v_state.to_xid;", "")),
    sql("the figures of a part are added twice", "minutes", "count_v1",
        ("while counted < p_limit and (v_state.xid, v_state.id) <> (v_state.to_xid, 0::bigint) loop",
         "v_state.xid := greatest(v_state.xid - 3, 1); while counted < p_limit and (v_state.xid, v_state.id) <> (v_state.to_xid, 0::bigint) loop")),
    sql("a redriven letter is still counted as dead", "stats", "count_effect_v1",
        ("when p_outcome in ('redriven', 'discarded') then -1", "when p_outcome = 'discarded' then -1")),
    python("SQLite: two folds count the same", "minutes", "engines/sqlite/operate/minutes.sql",
        ("where message_id = $1 and history_id = $2 returning single",
         "where $1 is not null and $2 is not null returning single"), engine="sqlite"),
    python("MariaDB: what was committed late is not counted", "minutes stats", "engines/mysql/operate/minutes.py",
        ("yield from self._check_gaps(figures, now)", ""), engine="mariadb"),
]  # fmt: skip
