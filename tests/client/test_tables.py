"""What a notebook shows of the library's lists."""

from datetime import UTC, datetime

from laneway.inspection import ChannelPage, Finding, MessagePage
from laneway.model import ChannelStats, Listing, QueueStats
from laneway.topic import Subscription


def test_a_list_is_shown_as_a_table_of_what_has_values() -> None:
    shown = Listing([Finding("role", "ok", "fine"), Finding("<b>", "warn", "a & b")])._repr_html_()
    assert shown.startswith("<table><tr><th>check</th><th>level</th><th>message</th>")
    assert "<th>fix</th>" not in shown, "nobody has one"
    assert "<td>&lt;b&gt;</td><td>warn</td><td>a &amp; b</td>" in shown


def test_named_tuples_empty_and_long_lists() -> None:
    assert "<td>orders</td>" in Listing([Subscription("orders", "q", None, None)])._repr_html_()
    assert MessagePage()._repr_html_() == ChannelPage()._repr_html_() == "<p>none</p>"
    many = Listing([Finding("x" * 1000, "ok", "fine")] * 1200)._repr_html_()
    assert many.endswith("<p>and 1,100 more</p>") and len(many) < 100_000
    assert many.count("<tr>") == 101


def test_it_is_a_list() -> None:
    assert Listing([1]) == [1] and isinstance(Listing(), list) and repr(Listing([1])) == "[1]"


def test_numbers_that_are_not_exact_say_so() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    counted = QueueStats("q", waiting=193_015, channels=7, exact=False, as_of=at)
    assert "waiting=about 193,015, scheduled=0" in repr(counted)
    assert "channels=at least 7" in repr(counted) and "exact=False" in repr(counted)
    assert "<td>about 193,015</td>" in Listing([counted])._repr_html_()
    assert counted.waiting == 193_015
    page = ChannelStats("q", "c", waiting=2000, exact=False)
    assert repr(page).startswith("ChannelStats(queue='q', channel='c', waiting=at least 2,000,")
    for known in (QueueStats("q", waiting=3), ChannelStats("q", "c", waiting=3)):
        assert "waiting=3," in repr(known) and "exact=True" in repr(known)
        assert eval(repr(known)) == known
