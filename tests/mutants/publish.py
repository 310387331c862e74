"""Defects of publishing and of the client, on PostgreSQL."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, Patch, function, python, sql

_PUBLISH = "client/sync/publish.py"
_ASK = "            results = database.run_items(publish, drafts, connection, waits=keyed)\n"

MUTANTS: list[Mutant] = [
    sql("keys are ignored", "keys", "publish_v1",
        ("if array_length(array_remove(p_key, null), 1) > 0 then", "if false then")),
    Mutant("a key lives for ever", frozenset({"keys"}), [
        Patch(function(name), "x.win is null and k.queue", "false and k.queue") for name in ("release_keys_v1", "pass_keys_v1")]),
    sql("some publishes wake nobody", "stuck", "publish_v1",
        ("from inserted i\n    group by greatest", "from inserted i where i.id % 11 <> 0\n    group by greatest"),
        ("values (greatest(v_due, v_now), v_channel_id, v_due, id, 1, coalesce(p_priority[1], 0), p_queue[1], p_channel[1], v_lane);",
         "select greatest(v_due, v_now), v_channel_id, v_due, id, 1, coalesce(p_priority[1], 0), p_queue[1], p_channel[1], v_lane where id % 11 <> 0;")),
    sql("a full channel takes more", "backlog", "publish_v1",
        ("if exists (select from channel c where c.backlog is not null or c.closing) then", "if false then")),
    sql("a channel with room refuses", "backlog", "refuse_v1", ("q.place > q.room then 'full'", "q.place >= q.room then 'full'")),
    sql("delays are ignored", "too_early", "publish_v1",
        ("coalesce(x.at, v_now + coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end), v_now),",
         "coalesce(x.at, v_now),"),
        ("v_due := coalesce(p_at[1], v_now + p_delay[1], v_now);", "v_due := coalesce(p_at[1], v_now);")),
    python("publishing ignores the caller's transaction", "unexpected", _PUBLISH,
        (_ASK, _ASK.replace("connection,", "None,"))),
    python("a key outlives the rollback of its publish", "keys", _PUBLISH,
        ("        database, publish = self._database, self._database.engine.messages.publish\n",
         "        database, publish = self._database, self._database.engine.messages.publish\n        seen = self.__dict__.setdefault('seen', {})\n"
         "        if len(drafts) == 1 and drafts[0].key in seen:\n            return [seen[drafts[0].key]]\n"),
        ("        return accepted(results, drafts.__getitem__)\n",
         "        if len(drafts) == 1 and drafts[0].key_window is not None:\n"
         "            seen[drafts[0].key] = results[0]._replace(status='existing')\n        return accepted(results, drafts.__getitem__)\n")),
    python("callers get each other's answers", "mixed_up", "client/sync/group_commit.py",
        ("zip(batch, answers, strict=True)", "zip(batch, answers[::-1], strict=True)")),
    python("an unknown outcome is tried again", "mixed_up", "client/sync/database.py",
        ("            return _split(self.run(verb(merged)), parts)",
         "            from laneway.errors import ConnectionUnavailable\n"
         "            try:\n                return _split(self.run(verb(merged)), parts)\n"
         "            except ConnectionUnavailable:\n                return _split(self.run(verb(merged)), parts)"),
        faults="cut,server"),
    python("completing ignores the caller's transaction", "effects", "client/sync/message.py",
        ("engine.leases.complete, rows, notes, connection", "engine.leases.complete, rows, notes, None")),
]  # fmt: skip
