"""The demo's last act: what its workers just did, on top of made-up days, as a report."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.errors import DriverMissing

from .lake import Lake

_DAYS, _MESSAGES = 8, 25_000


def demo_report(
    url: str,
    schema: str = "penstock",
    root: str | Path = "lake",
    *,
    days: float = _DAYS,
    messages: int = _MESSAGES,
    say: Callable[[str], None] = lambda text: None,
) -> str:
    """Syncs and verifies the queue's history, makes up the ``days`` before it, and answers where
    the report's page is. The page says which rows are real. Nothing is purged."""
    _need("pyspark", "pyarrow", "numpy")
    lake = Lake(url, root, schema=schema, say=say)
    synced = lake.sync()
    damaged = lake.verify().damaged
    begun = _first_start(lake) or datetime.now(UTC)
    _make_up(lake, begun, days, messages)
    note = (
        f"{synced.rows:,} rows, those since {begun:%H:%M:%S} UTC in the queue “default”, are what "
        f"the demo's workers just did. The {days:g} days before, with the other queues, are made "
        "up, so that there is something to compare with."
    )
    if damaged:
        note += f" {len(damaged)} files are not what was written!"
    _start_small_spark()
    return lake.report(note=note).page


def _need(*modules: str) -> None:
    from importlib import import_module

    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise DriverMissing(f'reports need: pip install "penstock[lake]" ({error})') from error


def _start_small_spark() -> None:
    """For a few small queries: no time is spent on making them fast."""
    from penstock.spark.session import quick_java, session

    session("demo", settings={**quick_java(), "spark.sql.shuffle.partitions": "2"})


def _first_start(lake: Lake) -> datetime | None:
    """When the first message of the real history was published."""
    times: list[Any] = [
        lake.folder.least(file.path, "first_published_at") for file in lake.folder.history_files()
    ]
    return min((at.astimezone(UTC) for at in times if at is not None), default=None)


def _make_up(lake: Lake, until: datetime, days: float, messages: int) -> None:
    from .root import MADE_UP
    from .synth import tell
    from .synth.writing import write_lake

    story = tell(messages, until=until - timedelta(seconds=1), days=days, calm=True)
    write_lake(story, lake.folder, batch=MADE_UP, live=False)
