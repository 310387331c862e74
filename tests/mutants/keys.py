"""Defects of messages that replace others with their key, and of debouncing."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, Patch, function, python, sql

_SQLITE, _MYSQL = "engines/sqlite", "engines/mysql"
_on_sqlite = partial(python, engine="sqlite")
_on_mariadb = partial(python, engine="mariadb")
_OWN = "key: of another channel or kind is another key"
_ALIKE = "key: names that read alike when joined are different keys"

MUTANTS: list[Mutant] = [
    sql("a replaced message keeps its payload", "newest", "replace_v1",
        ("payload = n.payload, content_type", "content_type")),
    sql("a replaced message keeps its saved state", "states", "replace_v1",
        ("spent = 0, state = null, state_type = null", "spent = 0")),
    sql("a running message is replaced", "newest", "replace_v1",
        ("when l.message_id is not null then 'leased'", "when false then 'leased'")),
    sql("a debounce does not move the time", "debounced", "replace_v1",
        ("when i.debounce_for is null or v_now", "when true or v_now")),
    Mutant("what waits behind a running message starts at once", frozenset({"one_of_a_key"}), [
        Patch(function("park_v1"), "timestamptz '5000-01-01 00:00:00+00' + (x.id % 1000000000000000) * interval '1 microsecond', p_now, p_now,",
              "p_now, p_now, p_now,")]),
    sql("two wait behind a running message", "one_of_a_key stuck", "replace_v1",
        ("when k.behind is not null then 'parked'", "when k.behind is not null then 'leased'")),
    sql("the end of a message starts nothing behind it", "stuck", "start_behind_v1",
        ("    if v_ids is null then\n", "    if true then\n")),
    sql("a message behind a running one starts before its retry", "one_of_a_key", "put_back_v1",
        ("from back b;", "from back b;\n    perform start_behind_v1(array_agg(m.id), array_agg(m.queue), array_agg(m.key), p_now)\n"
         "    from message m where m.id = any(p_ids) and m.key is not null;")),
    _on_mariadb("MariaDB: a replaced message keeps its payload", "newest", f"{_MYSQL}/publish.sql",
        ("headers = $8, payload = $9,", "headers = $8, payload = case when $9 is null then null else payload end,")),
    _on_mariadb("MariaDB: a running message is replaced", "newest", f"{_MYSQL}/publish.py",
        ("            if owner.leased:\n", "            if False:\n")),
    _on_mariadb("MariaDB: a debounce does not move the time", "debounced", f"{_MYSQL}/publish.py",
        ("due = next_due(now, row.due, old, owner.published_at, bound)", "due = old")),
    _on_mariadb("MariaDB: the end of a message starts nothing behind it", "stuck", f"{_MYSQL}/settle/end.py",
        ("fronts = [key for key in ended if key.behind == key.id]", "fronts: list[EndedKey] = []")),
    _on_sqlite("SQLite: a replaced message keeps its payload", "newest", f"{_SQLITE}/publish.sql",
        ("content_type = $5, payload = $6,", "content_type = $5, payload = case when $6 is null then null else payload end,")),
    _on_sqlite("SQLite: a running message is replaced", "newest", f"{_SQLITE}/publish.py",
        ("                elif not owner.leased:\n", "                elif True:\n")),
    _on_sqlite("SQLite: a debounce does not move the time", "debounced", f"{_SQLITE}/publish.py",
        ("due = next_due(state.now, wanted, old, owner.published_at, bound)", "due = old")),
    _on_sqlite("SQLite: what waits behind a running message starts at once", "one_of_a_key", f"{_SQLITE}/publish.py",
        ("        due = parked_due(id)\n", "        due = state.now\n")),
    python("a key holds in the whole queue", "conformance", function("key_names_v1"),
        ("else length(x.channel) || ':' || x.channel || x.kind end", "else 'queue' end"), case=_OWN),
    python("a key holds in the names of channel and kind as one text", "conformance", function("key_names_v1"),
        ("else length(x.channel) || ':' || x.channel", "else x.channel"), case=_ALIKE),
    _on_mariadb("MariaDB: a key holds in the whole queue", "conformance", "engines/keys.py",
        ('text = f"{len(channel)}:{channel}{kind}"', 'text = "queue"'), case=_OWN),
    _on_sqlite("SQLite: a key holds in the names of channel and kind as one text", "conformance", "engines/keys.py",
        ('text = f"{len(channel)}:{channel}{kind}"', 'text = f"{channel}{kind}"'), case=_ALIKE),
]  # fmt: skip
