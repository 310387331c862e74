"""``format("laneway")``: chooses the reader or writer for the options.

Spark imports this module in a new process for each plan and each commit, so what only some of them
need is imported where it is used.
"""

import sys
from importlib.util import find_spec

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from laneway.errors import InvalidOption

from .errors import brief_errors
from .options import parse

# Spark's own processes import pyarrow next, and would end without a word of it. A format that
# cannot be imported is one that Spark does not know, which is said in a sentence (errors.py).
if find_spec("pyarrow") is None:
    raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

# Spark plans a read with filter pushdown in a worker of this kind. Everywhere else it refuses a
# reader that accepts filters.
_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


@brief_errors
class LanewaySource(DataSource):
    """Reads and writes frames and streams of the queue."""

    @classmethod
    def name(cls) -> str:
        return "laneway"

    def schema(self) -> str:
        from .read.tables import TABLES

        return TABLES[self._what()].columns

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse(self.options, "read")
        what = self._what()
        if what == "claims":
            raise InvalidOption("claims are a stream: use spark.readStream")
        if options.address.dialect != "postgresql":
            from .read.mysql_sqlite import MysqlSqliteReader

            return MysqlSqliteReader(options, what, schema)
        if _PUSHING in sys.modules:
            from .read.reader import PushingReader

            return PushingReader(options, what, schema)
        from .read.reader import LanewayReader

        return LanewayReader(options, what, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        if "what" not in self.options:
            # No default: one of the two takes messages off the queue.
            raise InvalidOption(
                "option 'what' is missing: a stream reads 'claims' (takes messages) or 'history'"
            )
        what = self._what()
        if what == "claims":
            from .claim_stream import ClaimStream

            return ClaimStream(parse(self.options, "claim stream"), schema)
        if what == "history":
            from .history_stream import HistoryStream

            return HistoryStream(parse(self.options, "history stream"), schema)
        raise InvalidOption(f"{what} cannot be streamed: read history or claims")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use mode('append')")
        options = parse(self.options, "write")
        if options.address.dialect != "postgresql":
            from .publish.mysql_sqlite import MysqlSqliteWriter

            return MysqlSqliteWriter(options, schema)
        from .publish.writer import LanewayWriter

        return LanewayWriter(options, schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use outputMode('append')")
        from .publish.writer import LanewayStreamWriter

        return LanewayStreamWriter(parse(self.options, "publish stream"), schema)

    def _what(self) -> str:
        return str(self.options.get("what") or "history").lower()
