"""What a notebook shows of the library's lists."""

from laneway.inspection import ChannelPage, Finding, MessagePage
from laneway.model import Listing
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
