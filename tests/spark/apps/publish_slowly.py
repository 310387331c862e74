"""A frame into the queue under one key, slowly; it is killed on the way, or speculated about.

Arguments: URL, schema, the master. Run by tests/spark/test_kills.py.
"""

import sys
import time

from pyspark.sql.functions import udf

from laneway.spark import session

# A task is tried a second time as soon as it is slower than the others.
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
}


def main(url: str, schema: str, master: str) -> None:
    # On a cluster until the others have ended, also on a busy machine: the second attempt ends it.
    pause = 0.05 if master == "local[2]" else 0.6

    def slowly(id: int) -> str:
        """The first attempt of the first task takes long, but ends."""
        from pyspark import TaskContext

        from tests.spark.apps.marks import mark

        context = TaskContext.get()
        assert context is not None
        if id % 100 == 0:
            mark(url, f"task {context.partitionId()} attempt {context.attemptNumber()}")
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(pause)
        return f"message {id}"

    spark = session("publish slowly", master=master, settings=SETTINGS)
    frame = spark.range(0, 400, 1, 4)
    frame = frame.select(udf(slowly, "string", useArrow=False)("id").alias("payload"))
    writer = frame.write.format("laneway").options(url=url, schema=schema)
    writer = writer.option("content_type", "text/plain")
    writer.option("idempotency_key", "once").mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
