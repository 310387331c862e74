"""Which plan's customers have failing messages? A stream of what ended, joined with a table.

DATABASE_URL=postgresql://localhost/shop python examples/spark_stream_join.py customers.csv failures

Run it again at any time: it continues where it stopped, and counts every end once.
"""

import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count_if

from laneway.spark import session


def follow(spark: SparkSession, url: str, customers: DataFrame, folder: str) -> None:
    """``customers`` has the columns tenant and plan; a message's channel is its tenant."""
    history = spark.readStream.format("laneway").options(url=url, what="history").load()
    joined = history.join(customers, history.channel == customers.tenant)

    def save(batch: DataFrame, number: int) -> None:
        failed = count_if(col("outcome").isin("retried", "failed", "expired")).alias("failed")
        ended = count_if(col("terminal") | col("dead")).alias("ended")
        counted = batch.groupBy("plan", "kind").agg(failed, ended)
        # A batch that is replayed after a crash replaces itself.
        counted.write.mode("overwrite").parquet(f"{folder}/counts/batch={number}")

    writing = joined.writeStream.foreachBatch(save).trigger(availableNow=True)
    writing.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()


def show(spark: SparkSession, folder: str) -> DataFrame:
    counts = spark.read.parquet(f"{folder}/counts")
    return counts.groupBy("plan", "kind").sum("failed", "ended").orderBy("plan", "kind")


if __name__ == "__main__":
    spark = session("failures by plan")
    customers = spark.read.csv(sys.argv[1], header=True)
    follow(spark, os.environ["DATABASE_URL"], customers, sys.argv[2])
    show(spark, sys.argv[2]).show()
