"""``format("penstock")``: which reader or writer the options ask for.

Spark imports this in a process of its own for each plan and each commit: what only some need is
imported by them.
"""

import sys

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from penstock.errors import InvalidOption

from .claim_stream import ClaimStream
from .history_stream import HistoryStream
from .options import parse
from .publishing import PenstockStreamWriter, PenstockWriter
from .pushing import PushingReader
from .reading import PenstockReader
from .tables import TABLES

# Spark plans a read that may push filters in a process of its own kind; elsewhere a reader that can
# take filters is refused.
_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


class PenstockSource(DataSource):
    """Frames and streams out of the queue and into it; the options say which."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return TABLES[self._what()].columns

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse(self.options, "read")
        what = self._what()
        if what == "claims":
            raise InvalidOption("claims are a stream: use spark.readStream")
        if options.address.dialect != "postgresql":
            from .row_reading import RowReader

            return RowReader(options, what, schema)
        if _PUSHING in sys.modules:
            return PushingReader(options, what, schema)
        return PenstockReader(options, what, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        if "what" not in self.options:
            # No default here: one of the two takes messages off the queue.
            raise InvalidOption("say what to stream: option('what', 'claims') or 'history'")
        what = self._what()
        if what == "claims":
            return ClaimStream(parse(self.options, "claim stream"), schema)
        if what == "history":
            return HistoryStream(parse(self.options, "history stream"), schema)
        raise InvalidOption(f"{what} cannot be streamed: read history or claims")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use mode('append')")
        options = parse(self.options, "write")
        if options.address.dialect != "postgresql":
            from .row_publishing import RowWriter

            return RowWriter(options, schema)
        return PenstockWriter(options, schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use outputMode('append')")
        return PenstockStreamWriter(parse(self.options, "publish stream"), schema)

    def _what(self) -> str:
        return str(self.options.get("what") or "history").lower()
