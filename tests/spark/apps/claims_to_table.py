"""A claim stream into a table that takes each batch once, slowly; it is killed on the way.

Arguments: URL, schema, a folder for the checkpoint. Run by tests/spark/test_kills.py.
"""

import sys
import time

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql.functions import udf

from laneway.spark import session
from tests.spark.apps.marks import mark


def main(url: str, schema: str, folder: str) -> None:
    spark = session("claims to table", master="local[2]")

    def slowly(id: int) -> int:
        """Runs where rows are read."""
        if id % 10 == 3:
            from tests.spark.apps.marks import mark

            mark(url, "reading")
            time.sleep(0.5)
        return id

    def sink(frame: DataFrame, batch: int) -> None:
        ids = [row.id for row in frame.select(read("id").alias("id")).collect()]
        with psycopg.connect(url) as connection:
            connection.execute("delete from public.sunk where batch = %s", [batch])
            for id in ids:
                connection.execute("insert into public.sunk values (%s, %s)", [batch, id])
        mark(url, "sunk")
        time.sleep(0.5)

    read = udf(slowly, "bigint", useArrow=False)
    options = {"url": url, "schema": schema, "what": "claims", "maxMessagesPerTrigger": "25"}
    stream = spark.readStream.format("laneway").options(**options).load()
    writing = stream.writeStream.foreachBatch(sink).trigger(availableNow=True)
    writing.option("checkpointLocation", folder).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4])
