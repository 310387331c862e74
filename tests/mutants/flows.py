"""Defects of flows: messages that come after others."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, Patch, function, python, sql

_SHARED = "engines/flows.py"
_on_sqlite = partial(python, engine="sqlite")
_on_mariadb = partial(python, engine="mariadb")
_IDS = "tests/mysql/test_flow_ids.py::test_they_are_taken_at_once"
_COUNTED = "tests/mysql/test_minutes.py::test_nodes_are_counted_when_they_are_released"

MUTANTS: list[Mutant] = [
    sql("a node is released after the first of its parents", "flows", "decide_nodes_v1",
        ("c.state <> 'held' or c.pending > x.n then c.state", "c.state <> 'held' or c.pending > x.n + 1 then c.state"),
        ("where t.pending = 0 and t.state in", "where t.state in")),
    sql("a parent that ended is not counted down", "flows", "decide_nodes_v1",
        ("set pending = c.pending - x.n,", "set pending = c.pending - x.n + (c.id % 2)::integer,")),
    sql("when= is ignored", "flows", "decide_nodes_v1",
        ("when c.run_when = 'completed' and c.missed + x.missed > 0 then 'skipped'", ""),
        ("when c.run_when = 'failed' and c.missed + x.missed = 0 then 'skipped'", "")),
    sql("what a lost attempt added is begun", "flows mixed_up", "add_staged_v1",
        ("(h.fence <> x.fence or exists (", "(false or exists (")),
    sql("a redriven letter is no node any more", "flows", "redrive_v1",
        ("then true end, g.flow_id", "then true end, null::bigint")),
    sql("who dies decides nobody", "flows", "move_to_dead_v1",
        ("filter (where g.flow_id is not null)", "filter (where g.flow_id is null and g.flow_id is not null)")),
    python("nodes that are released late are in no minute", "minutes", function("release_nodes_v1"),
        ("from inserted i group by i.queue, i.kind", "from inserted i where false group by i.queue, i.kind")),
    _on_sqlite("SQLite: a node is released after the first of its parents", "flows", _SHARED,
        ('if node.state != "held" or pending:', 'if node.state != "held" or pending > 1:')),
    _on_sqlite("SQLite: when= is ignored", "flows", _SHARED,
        ('return "live" if runs else "skipped"', 'return "live"')),
    _on_sqlite("SQLite: what a lost attempt added is begun", "flows mixed_up", _SHARED,
        ('fences.get(row.adder) == row.fence and', "")),
    _on_mariadb("MariaDB: a parent that ended is not counted down", "flows", _SHARED,
        ("pending = node.pending - count", "pending = node.pending - count + id % 2")),
    _on_mariadb("MariaDB: who dies decides nobody", "flows", "engines/mysql/settle/end.py",
        ("for lease, _ in dying if lease.flow_id is not None]", "for lease, _ in dying if lease.flow_id == 0]")),
    _on_mariadb("MariaDB: a redriven letter is no node any more", "flows", "engines/mysql/dead_letters.sql",
        ("d.state_type, d.state, d.payload, d.flow_id\nfrom $1:ids x", "d.state_type, d.state, d.payload, null\nfrom $1:ids x")),
    Mutant("MariaDB: ids of held nodes are given to others too", frozenset({"test"}), [
        Patch("engines/mysql/flows.py", 'self._sql.statement("take_ids", [width])', 'self._sql.statement("take_ids", [step])')],
        engine="mariadb", test=_IDS),
    Mutant("MariaDB: released nodes are in no minute", frozenset({"test"}), [
        Patch("engines/mysql/flows_release.py", 'yield from self._sql.insert("add_released_nodes", [(len(ids), _json(ids))])', "pass")],
        engine="mariadb", test=_COUNTED),
]  # fmt: skip
