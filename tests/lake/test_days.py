"""Days of a lake are days of UTC, and a length of time is as long as it says."""

from datetime import UTC, date, datetime, timedelta

import pytest

from laneway.lake import Lake
from laneway.lake.catalog import Catalog
from tests.place import Place


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_now_is_in_utc_whatever_the_session_says(lake: Lake, place: Place, zone: str) -> None:
    url = f"{place.url}?options=-c%20TimeZone%3D{zone.replace('/', '%2F')}"
    assert Lake(url, "nowhere", schema=place.schema).catalog.now().tzinfo is UTC


@pytest.mark.parametrize(
    ("keep", "before"),
    [
        (timedelta(0), date(2026, 11, 16)),
        (timedelta(minutes=30), date(2026, 11, 15)),
        (timedelta(hours=24), date(2026, 11, 15)),
        (timedelta(hours=47), date(2026, 11, 14)),
        (timedelta(days=30), date(2026, 10, 17)),
    ],
)
def test_a_day_goes_when_its_last_moment_is_so_old(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, keep: timedelta, before: date
) -> None:
    """Twenty minutes past midnight: what ended yesterday at noon is not 47 hours old."""
    now = datetime(2026, 11, 16, 0, 20, tzinfo=UTC)
    monkeypatch.setattr(Catalog, "now", lambda self: now)
    assert lake.catalog.ended_before(keep) == before
