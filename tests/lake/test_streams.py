"""A registered stream of the history: purge and retention wait for it, or say that they did not."""

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

from laneway import Queue
from laneway.errors import InvalidOption
from laneway.inspection import Finding
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory
from laneway.spark.history_stream import HistoryStream
from laneway.spark.options import parse
from tests.cli.commands import Cli
from tests.lake.conftest import KEEP
from tests.lake.test_sync import in_database
from tests.place import Place
from tests.spark.conftest import options

ALL = ReadAllAvailable()
BEGIN = {"xid": 0, "id": 0}


def stream(place: Place, name: str | None = "audit", **more: Any) -> HistoryStream:
    named = {} if name is None else {"stream": name}
    given = parse(options(place, what="history", **named, **more), "history stream")
    return HistoryStream(given, StructType([StructField("id", LongType())]))


def ready(lake: Lake) -> int:
    """All is in the lake; how many rows."""
    rows = lake.sync().rows
    assert lake.verify().damaged == []
    return rows


def finding(queue: Queue) -> Finding:
    (found,) = [one for one in queue.diagnose() if one.check == "history streams"]
    return found


def age(place: Place, length: str) -> None:
    """The streams were last seen so long ago."""
    with psycopg.connect(place.url) as connection:
        text = "update {}.history_reader set seen_at = seen_at - %s::interval"
        connection.execute(sql.SQL(text).format(sql.Identifier(place.schema)), (length,))


def test_purge_and_retention_wait_until_it_has_read(told: Lake, queue: Queue, place: Place) -> None:
    whole = ready(told)
    queue.configure(history_days=1)
    reading = stream(place)
    end = reading.latestOffset(BEGIN, ALL)
    assert not [day for day in told.purge(KEEP) if day.stays is None]
    held = [day.stays for day in told.purge(KEEP, dry_run=True) if "newer" not in (day.stays or "")]
    assert held and all("have not been read by stream audit" in (stays or "") for stays in held)
    queue.upkeep()
    assert in_database(told) == whole
    # Spark asks for what follows a batch only when that is in its commit log.
    assert reading.latestOffset(end, ALL) == end
    assert any(day.stays is None for day in told.purge(KEEP))
    assert in_database(told) < whole
    assert [(one.name, one.unread, one.missed_at) for one in told.streams()] == [("audit", 0, None)]
    assert finding(queue).level == "ok"


def test_an_unread_row_in_the_middle_is_enough(
    told: Lake, place: Place, story: SyntheticHistory
) -> None:
    """The stream has read the first of four days; the rest stays, and the first goes."""
    ready(told)
    reading = stream(place, maxRowsPerTrigger=story.history.num_rows // 4)
    first = reading.latestOffset(BEGIN, reading.getDefaultReadLimit())
    reading.latestOffset(first, reading.getDefaultReadLimit())
    days = told.purge(KEEP)
    assert days[0].stays is None
    assert any("stream audit" in (day.stays or "") for day in days[1:])


def test_a_forced_purge_is_told_to_the_stream(told: Lake, queue: Queue, place: Place) -> None:
    ready(told)
    reading = stream(place)
    end = reading.latestOffset(BEGIN, ALL)
    told.purge(KEEP, force=True)
    with pytest.raises(InvalidOption, match="stream audit had not read was deleted"):
        reading.latestOffset(end, ALL)
    found = finding(queue)
    assert found.level == "fail" and "audit" in found.message and "--forget" in (found.fix or "")
    with pytest.raises(InvalidOption, match="had not read was deleted"):
        stream(place).latestOffset(end, ALL)
    assert told.forget_stream("audit") and not told.forget_stream("audit")
    assert stream(place).latestOffset(end, ALL) == end
    assert finding(queue).level == "ok"


def test_patience_ends_and_the_stream_hears_of_it(told: Lake, queue: Queue, place: Place) -> None:
    whole = ready(told)
    queue.configure(history_days=1)
    end = stream(place, patience="2d").latestOffset(BEGIN, ALL)
    age(place, "25 hours")
    found = finding(queue)
    assert found.level == "warn" and "audit (last seen" in found.message
    queue.upkeep()
    assert in_database(told) == whole, "two days are not over"
    age(place, "24 hours")
    queue.upkeep()
    assert in_database(told) < whole
    assert finding(queue).level == "fail"
    with pytest.raises(InvalidOption, match="longer than its patience"):
        stream(place).latestOffset(end, ALL)
    assert stream(place).latestOffset(BEGIN, ALL) == end, "without a checkpoint it begins anew"
    assert finding(queue).level == "ok"


def test_a_late_stream_that_nobody_overtook_goes_on(told: Lake, place: Place) -> None:
    ready(told)
    end = stream(place).latestOffset(BEGIN, ALL)
    age(place, "30 days")
    assert stream(place).latestOffset(end, ALL) == end
    assert told.streams()[0].missed_at is None


def test_rows_that_it_does_not_want_are_not_kept_for_it(told: Lake, place: Place) -> None:
    ready(told)
    reading = stream(place, queue="nobody")
    assert reading.latestOffset(BEGIN, ALL) == BEGIN
    assert told.streams()[0].unread == 0
    assert any(day.stays is None for day in told.purge(KEEP))
    assert stream(place, queue="nobody").latestOffset(BEGIN, ALL) == BEGIN


def test_a_name_is_for_one_query(told: Lake, place: Place) -> None:
    ready(told)
    half = stream(place, maxRowsPerTrigger=500)
    first = half.latestOffset(BEGIN, half.getDefaultReadLimit())
    end = stream(place).latestOffset(BEGIN, ALL)
    stream(place).latestOffset(end, ALL)
    with pytest.raises(InvalidOption, match="has been further than this checkpoint"):
        half.latestOffset(first, half.getDefaultReadLimit())


def test_a_stream_that_registers_while_a_day_is_purged_is_not_overlooked(
    told: Lake, place: Place
) -> None:
    """It has a checkpoint, and says ok or waits: nothing may go after it was told ok."""
    ready(told)
    limit = stream(place, maxRowsPerTrigger=500).getDefaultReadLimit()
    first = stream(place, None).latestOffset(BEGIN, limit)
    with psycopg.connect(place.url) as registering:
        call = sql.SQL("select {}.read_history_v1('audit', %s, %s)").format(
            sql.Identifier(place.schema)
        )
        registering.execute(call, (first["xid"], first["id"]))
        purging = threading.Thread(target=told.purge, args=(KEEP,))
        purging.start()
        purging.join(0.5)
    purging.join()
    (reader,) = told.streams()
    assert reader.missed_at is None and reader.unread > 0
    assert any("stream audit" in (day.stays or "") for day in told.purge(KEEP))


def test_a_stream_without_a_name_is_warned(
    told: Lake, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    ready(told)
    end = stream(place, None).latestOffset(BEGIN, ALL)
    stream(place, None).latestOffset(end, ALL)
    assert caplog.messages == []
    with psycopg.connect(place.url) as connection:
        connection.execute(sql.SQL("delete from {}.history").format(sql.Identifier(place.schema)))
    stream(place, None).latestOffset(end, ALL)
    assert "the history begins after the checkpoint" in caplog.text
    assert told.streams() == []


def test_on_the_command_line(told: Lake, place: Place) -> None:
    cli = Cli(place.url, place.schema)
    root = told.folder.root
    ready(told)
    stream(place).latestOffset(BEGIN, ALL)
    (shown,) = cli.json("lake", "streams")
    assert shown["name"] == "audit" and shown["unread"] > 0 and shown["missed_at"] is None
    assert "audit" in cli.run("lake", "streams").stdout
    gone = cli.run("lake", "purge", "--lake", root, "--keep", "1d", "--force", "--yes").stdout
    assert "\tyes\t" in gone
    (shown,) = cli.json("lake", "streams")
    assert shown["missed_at"] is not None
    assert "Forgot stream audit" in cli.run("lake", "streams", "--forget", "audit", "-y").stderr
    assert cli.json("lake", "streams") == []
    assert "No stream" in cli.run("lake", "streams", "--forget", "audit", "-y", code=3).stderr


def test_the_default_is_a_week(told: Lake, place: Place) -> None:
    stream(place).latestOffset(BEGIN, ALL)
    (reader,) = told.streams()
    assert reader.waited_until - reader.seen_at == timedelta(days=7)
