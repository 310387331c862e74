"""worker --spark: runs a worker's handlers on Spark executors."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

from laneway.spark import run_handlers, session
from laneway.spark.errors import plainly
from laneway.worker.run.shutdown import stop_signals

from .exits import Code

if TYPE_CHECKING:
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
