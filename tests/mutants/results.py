"""Defects of results that are kept."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, function, python

_KEPT = function("complete_kept_v1")
_LOST = "where not exists (select from unnest(v_lost, v_lost_fences) l(id, fence) where l.id = k.id and l.fence = k.fence)"

MUTANTS: list[Mutant] = [
    python("a stale holder stores its result", "results", _KEPT, (_LOST, "where true")),
    python("some results are not kept", "results", _KEPT, (_LOST, f"{_LOST} and k.id % 5 <> 0")),
    python("the worker keeps the result of its first message only", "results", "worker/settle.py",
        ("for e in entries if e.result is not None}", "for e in entries[:1] if e.result is not None}")),
    python("SQLite: a stale holder stores its result", "results", "engines/sqlite/settle/settle.sql",
        ("where l.fence = $2 and l.message_id = $1 and m.id = l.message_id", "where $2 and l.message_id = $1 and m.id = l.message_id"),
        engine="sqlite"),
    python("SQLite: some results are not kept", "results", "engines/sqlite/settle/settle.py",
        ("for (id, fence), kept in results.items()", "for (id, fence), kept in results.items() if id % 5"),
        engine="sqlite"),
    python("MariaDB: some results are not kept", "results", "engines/mysql/settle/settle.py",
        ("for key, result in results.items() if key in kept}", "for key, result in results.items() if key in kept and key[0] % 5}"),
        engine="mariadb"),
]  # fmt: skip
