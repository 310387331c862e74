"""Everything that the connector does, with a password in the URL; prints what Spark shows of it.

Arguments: URL, schema, a folder to write to. Run by tests/spark/test_session.py.
"""

import json
import sys
from pathlib import Path
from urllib.request import urlopen

from laneway.spark import doctor, reason, session

SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.log.level": "INFO",
    "spark.driver.extraJavaOptions": "",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}


def main(url: str, schema: str, folder: Path) -> None:
    print("JAVA", doctor()[0].text)
    events = folder / "events"
    events.mkdir()
    spark = session(
        "canary", master="local[2]", settings={**SETTINGS, "spark.eventLog.dir": str(events)}
    )
    options = {"url": url, "schema": schema}
    frame = spark.range(20).selectExpr("cast(id as string) as payload")
    frame.write.format("laneway").options(**options).mode("append").save()
    read = spark.read.format("laneway").options(**options, what="messages").load()
    read.explain("extended")
    read.createOrReplaceTempView("messages")
    spark.sql("explain formatted select count(*) from messages").show(1, False)
    print("ROWS", read.count())
    stream = spark.readStream.format("laneway").options(**options, what="claims").load()
    writing = stream.selectExpr("payload", "channel").writeStream.format("laneway")
    writing = writing.options(**options, queue="copies").trigger(availableNow=True)
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination(120)
    query.explain(True)
    print("PROGRESS", json.dumps([progress.prettyJson for progress in query.recentProgress]))
    try:
        broken = {**options, "url": url.rsplit("/", 1)[0] + "/nowhere"}
        spark.read.format("laneway").options(**broken).load().count()
    except Exception as error:
        print("ERROR", error)
        print("REASON", reason(error))
    for page in ("SQL/", "environment/", "jobs/", "stages/", "StreamingQuery/"):
        print(urlopen(f"{spark.sparkContext.uiWebUrl}/{page}").read().decode())
    for path in ("sql?details=true&planDescription=true", "environment"):
        api = (
            f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
        )
        print(urlopen(f"{api}/{path}").read().decode())
    spark.stop()
    for file in sorted(events.rglob("*")):
        if file.is_file():
            print(file.read_text(errors="replace"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
