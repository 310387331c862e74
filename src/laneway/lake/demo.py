"""The report at the end of the demo: what its workers just did, after some made-up days."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from laneway.extras import needs

from .lake import Lake

_DAYS, _MESSAGES = 8, 25_000


def demo_report(
    url: str,
    schema: str = "laneway",
    root: str | Path = "lake",
    *,
    days: float = _DAYS,
    messages: int = _MESSAGES,
    say: Callable[[str], None] = lambda text: None,
) -> str:
    """Syncs and verifies the queue's history, makes up the ``days`` before it, and returns the path
    of the report's page. The page says which rows are real. Nothing is purged."""
    _check_installed("pyspark", "pyarrow", "numpy")
    lake = Lake(url, root, schema=schema, say=say)
    synced = lake.sync()
    damaged = lake.verify().damaged
    begun = _first_start(lake) or datetime.now(UTC)
    _make_up(lake, begun, days, messages)
    note = (
        f"{synced.rows:,} rows are real: those in the queue “default” since {begun:%H:%M:%S} UTC, "
        f"which the demo's workers just did. The {days:g} days before and the other queues are "
        "made up, so that there is something to compare with."
    )
    if damaged:
        note += f" {len(damaged)} files are damaged!"
    _start_small_spark()
    return lake.report(note=note).page


def _check_installed(*modules: str) -> None:
    for name in modules:
        with needs("A report", name, "lake"):
            import_module(name)


def _start_small_spark() -> None:
    """With settings for a few small queries."""
    from laneway.spark.environment import quick_java, session

    session("demo", settings={**quick_java(), "spark.sql.shuffle.partitions": "2"})


def _first_start(lake: Lake) -> datetime | None:
    """When the first message of the real history was published."""
    times: list[Any] = [
        lake.folder.least(file.path, "first_published_at") for file in lake.folder.history_files()
    ]
    return min((at.astimezone(UTC) for at in times if at is not None), default=None)


def _make_up(lake: Lake, until: datetime, days: float, messages: int) -> None:
    from .owner import MADE_UP
    from .synth import synthesize
    from .synth.write import write_lake

    made_up = synthesize(messages, until=until - timedelta(seconds=1), days=days, calm=True)
    write_lake(made_up, lake.folder, batch=MADE_UP, live=False)
