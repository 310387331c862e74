"""What commands do on Spark: worker --spark and dead redrive --spark."""

import os
import signal
import sys
import threading
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from laneway.spark import run_handlers, session
from laneway.spark.errors import plainly
from laneway.spark.options import parse
from laneway.spark.redrive import Letters, dead_letters, redrive
from laneway.worker.run.shutdown import stop_signals

from .connect import settled
from .dialog import confirm
from .exits import Code
from .output import emit, printable, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laneway import Worker


def run_on_spark(
    worker: "Worker", master: str, stream: str | None, until_empty: bool, batch: int, per_task: int
) -> dict[str, int]:
    """Runs until a signal; a second one ends the process at once, and its leases expire."""
    here = os.pathsep.join(["", os.getcwd(), *_given()]).strip(os.pathsep)
    os.environ["PYTHONPATH"] = here
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {} if submitted else {"spark.executorEnv.PYTHONPATH": here}
    with plainly():
        spark = session(
            f"laneway worker {worker.queues[0]}",
            master=None if submitted else master,
            settings=settings,
        )
    stop = threading.Event()
    for number in stop_signals():
        signal.signal(number, _stopper(stop))
    try:
        return dict(
            run_handlers(
                worker,
                spark,
                stream=stream,
                until_empty=until_empty,
                stop=stop,
                messages_per_batch=batch,
                messages_per_task=per_task,
            )
        )
    finally:
        spark.stop()


def _stopper(stop: threading.Event) -> "signal._HANDLER":
    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            sys.exit(Code.FAILED)
        stop.set()

    return on_signal


def _given() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


_PREVIEW = 5


def redrive_by_spark(
    by: dict[str, Any],
    where: str | None,
    rate: float | None,
    max_attempts: int | None,
    delay: timedelta,
    master: str | None,
    dry_run: bool,
    yes: bool,
    url: str | None,
    schema: str | None,
    as_json: bool,
) -> int:
    """Shows how many are in which channels, asks, and reports progress."""
    config = settled(url, schema)
    assert config.url is not None
    parse(
        {"url": config.url, "schema": config.schema}, "read"
    )  # check the URL before Java is started
    with plainly():
        spark = session("laneway redrive", master=master)
    try:
        letters = _chosen(spark, config.url, config.schema, by, where)
        count = _preview(letters)
        if dry_run:
            if as_json:
                emit({"would_redrive": count, "or_more": False})
            say(f"Would redrive {count:,}.")
            raise typer.Exit(Code.OK)
        confirm(f"Redrive: {count:,} dead letter{'s' if count > 1 else ''}?", yes)
        return redrive(
            letters,
            rate=rate,
            max_attempts=max_attempts,
            delay=delay,
            progress=lambda done: say(f"{done:,} of {count:,}"),
        )
    finally:
        spark.stop()


def _chosen(
    spark: "SparkSession", url: str, schema: str, by: dict[str, Any], where: str | None
) -> Letters:
    options: dict[str, str] = {
        name: by[name] for name in ("queue", "channel", "kind") if name in by
    }
    if "since" in by:
        options["since"] = by["since"].isoformat()
    letters = dead_letters(spark, url, schema=schema, where=where, until=by.get("until"), **options)
    chosen = letters.frame
    for name in {"reason", "error_type"} & set(by):
        chosen = chosen.where(chosen[name] == by[name])
    return Letters(letters.address, letters.until, chosen)


def _preview(letters: Letters) -> int:
    with plainly():
        counts = letters.frame.groupBy("queue", "channel").count().collect()
    total: int = sum(row["count"] for row in counts)
    if not total:
        say("No dead letter matches.")
        raise typer.Exit(Code.NOTHING)
    counts.sort(key=lambda row: -row["count"])
    for row in counts[:_PREVIEW]:
        say(printable(f"  {row['count']:,}  {row.queue}/{row.channel}"))
    if len(counts) > _PREVIEW:
        say(f"… {total:,} in {len(counts):,} channels")
    return total
