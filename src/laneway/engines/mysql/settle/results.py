"""Results: what handlers returned, and how messages ended whose results were to be kept."""

from collections.abc import Sequence

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.times import micros
from laneway.event import StoredResult
from laneway.model import Results
from laneway.plan import Plan


class MysqlResults(MysqlBase):
    def _keep_results(self, results: Results, outcome: str, now: int) -> Plan[None]:
        """Of messages that end in this transaction. The caller has locked their leases."""
        yield from self._check_fits(result.payload for result in results.values())
        rows = yield self._statement("names_of_messages", sorted(id for id, _ in results))
        names = {int(row[0]): row[1:] for row in rows}
        yield from self._insert(
            "keep_results",
            [
                (
                    *(id, now, now + micros(kept.keep), *names[id], outcome.encode()),
                    *(data(kept.content_type), kept.payload),
                )
                for (id, _), kept in results.items()
            ],
        )

    def _keep_ended(self, ids: Sequence[int], outcome: bytes, now: int) -> Plan[None]:
        """Of messages that no handler ends. The caller deletes them afterwards."""
        yield self._statement("keep_ended", ids, outcome, now)

    def _delete_expired_results(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._statement("expired_results", now, limit)
        if rows:
            yield self._statement("delete_results", [int(row[0]) for row in rows])
        return len(rows)

    @repeatable
    def results(self, ids: Sequence[int]) -> Plan[list[StoredResult | None]]:
        rows = yield self._statement("results", sorted(set(ids)), self._now())
        found = {int(row[0]): StoredResult(text(row[1]) or "", bytes(row[2])) for row in rows}
        return [found.get(id) for id in ids]
