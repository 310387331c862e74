"""Publish, read and stream once, on whatever Spark the environment asks for; prints what came.

Arguments: URL, schema, a folder for checkpoints, the master or ``-``. Run by
tests/spark/test_places.py, also through spark-submit and Spark Connect.
"""

import sys

from pyspark.sql.functions import udf

from laneway.spark import session


def host(_: int) -> str:
    import os

    return str(os.getppid())


def main(url: str, schema: str, folder: str, master: str) -> None:
    spark = session("round trip", master=None if master == "-" else master)
    options = {"url": url, "schema": schema}
    frame = spark.range(0, 1000, 1, 4).selectExpr("cast(id as string) as payload")
    frame.write.format("laneway").options(**options).mode("append").save()
    read = spark.read.format("laneway").options(**options, what="messages").load()
    print("MESSAGES", read.count())
    stream = spark.readStream.format("laneway").options(**options, what="claims").load()
    writing = stream.selectExpr("payload").writeStream.format("laneway").trigger(availableNow=True)
    writing = writing.options(**options, queue="copies").option("checkpointLocation", folder)
    query = writing.start()
    assert query.awaitTermination(240)
    history = spark.read.format("laneway").options(**options).load()
    print("COMPLETED", history.where("outcome = 'completed'").count())
    places = spark.range(0, 8, 1, 8).select(udf(host, "string", useArrow=False)("id")).distinct()
    print("PROCESSES", places.count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
