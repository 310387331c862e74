"""``format("penstock")``: which reader or writer the options ask for."""

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
    """A DataFrame of the queue's history, messages or dead letters."""

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
        if _PUSHING in sys.modules:
            return PushingReader(options, what, schema)
        return PenstockReader(options, what, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = parse(self.options, "read stream")
        if self._what() != "history":
            raise InvalidOption(f"{self._what()} cannot be streamed: read history or claims")
        return HistoryStream(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use mode('append')")
        return PenstockWriter(parse(self.options, "write"), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        if overwrite:
            raise InvalidOption("a queue cannot be overwritten: use outputMode('append')")
        return PenstockStreamWriter(parse(self.options, "write stream"), schema)

    def _what(self) -> str:
        return str(self.options.get("what") or "history").lower()
