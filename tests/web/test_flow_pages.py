"""Flows on the pages: what stands still, since when, what to press; drawings; limits in a row."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from laneway import Queue
from laneway.client.sync import flow as sync_flow
from laneway.flow import FlowLink, NodeInfo
from laneway.limits import Adapt, Breaker
from laneway.operator import ADMIN, Principal, Right
from laneway.shared_limits import SETTINGS
from laneway.web import Dashboard
from laneway.web.pages.flow_graph import draw_groups, draw_nodes, group_nodes, steps_of
from laneway.web.request import WebRequest, WebResponse

LOCAL = {"host": "127.0.0.1:8400"}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'q.db'}", upkeep_every=None, clock=clock) as client:
        client.install()
        yield client


@pytest.fixture
def pages(queue: Queue) -> Iterator[Dashboard]:
    made = Dashboard(queue, trust_local=True)
    yield made
    made.close()


def ask(pages: Dashboard, path: str, status: int = 200) -> str:
    pages.cache.clear()
    path, _, query = path.partition("?")
    answer = pages.respond(WebRequest("GET", path, query, LOCAL, b"", "127.0.0.1"))
    assert answer.status == status, answer.body
    return answer.body.decode()


def shown(pages: Dashboard, path: str, status: int = 200) -> str:
    """The text of a page, with one space where its markup was."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", ask(pages, path, status)))


def press(pages: Dashboard, **fields: object) -> WebResponse:
    body = urlencode({name: str(value) for name, value in fields.items()}).encode()
    return pages.respond(WebRequest("POST", "/act", "", LOCAL, body, "127.0.0.1"))


def still(queue: Queue, clock: Clock) -> int:
    """A flow that a dead letter holds since twelve; it is a quarter past now."""
    with queue.flow("import:42", channel="tenant-1") as flow:
        pages = [flow.add({"n": n}, kind="fetch") for n in range(3)]
        merged = flow.add("merge", kind="merge", after=pages)
        flow.add("tell", kind="tell", after=merged, when="ended")
    for message in queue.claim(limit=3):
        if message.id == pages[1].id:
            message.fail(reason="gone", error=LookupError("page 1 is gone"))
        else:
            message.complete()
    clock.now += timedelta(minutes=15)
    return flow.id or 0


def test_what_stands_still_says_since_when_and_what_to_press(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    number = still(queue, clock)
    for path in ("/", f"/flows/{number}"):
        text = shown(pages, path)
        assert "1 dead letter holds 2 nodes" in text, path
        assert "Since 12:00:00 ( 15 min )" in text, path
        assert "Redrive" in text
    assert "Flow “import:42” of queue “default” stands still" in shown(pages, "/")
    text = shown(pages, f"/flows/{number}")
    assert "LookupError page 1 is gone" in text
    assert "held , waits for 1" in text
    assert "import:42" in shown(pages, "/flows?state=dead")
    assert "No flow that matches" in shown(pages, "/flows?state=completed")
    # The preview asks; the second press does it, and the flow runs.
    asked = press(pages, verb="redrive_flow", flow_id=number, back=f"flows/{number}")
    assert asked.status == 200
    assert queue.flows.get(number).dead == 1
    done = press(pages, verb="redrive_flow", flow_id=number, back=f"flows/{number}", sure="yes")
    assert done.status == 303
    assert queue.flows.get(number).state == "running"
    assert [(e.action, e.target, e.affected) for e in queue.audit()] == [
        ("redrive_flow", {"flow_id": number}, 1)
    ]
    assert "stands still" not in shown(pages, "/")


def test_a_message_shows_its_flow_also_before_it_is_one(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    still(queue, clock)
    dead = shown(pages, "/messages/2")
    assert "Flow import:42 2 of 5 nodes completed, stands still" in dead
    assert "Comes before merge 4 held" in dead
    held = shown(pages, "/messages/4")
    assert "1 of what it comes after has not ended yet" in held
    # What it waits for comes first.
    assert "Comes after fetch 2 dead letter fetch 1 completed fetch 3 completed" in held
    assert "Comes before tell 5 held" in held
    assert "everything before it has ended;" in shown(pages, "/messages/5")
    alone = queue.publish("alone").id
    assert "Comes after" not in shown(pages, f"/messages/{alone}")
    queue.flows.cancel(1)
    assert "Cancelled" in shown(pages, "/messages/5")
    assert "There is no message 77" in shown(pages, "/messages/77", 404)


def test_who_sees_some_channels_sees_no_flows(queue: Queue, clock: Clock) -> None:
    number = still(queue, clock)
    scoped = Principal("ann", ADMIN, channel_prefixes=("tenant-1",))
    pages = Dashboard(queue, principal=lambda request: scoped)
    assert "import:42" not in shown(pages, "/messages/2")
    assert "There is no message 4" in shown(pages, "/messages/4", 404)
    assert "Flows" not in shown(pages, "/channels")
    for path in ("/flows", f"/flows/{number}"):
        assert "import:42" not in shown(pages, path, 403)
    pages.close()


def test_a_database_without_flows_says_so(
    pages: Dashboard, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = queue.publish(1).id
    engine = pages.connections.acting.database.engine
    monkeypatch.setattr(type(engine), "lacks", {"flows": "publish each step from the one before"})
    assert "This database has no flows: publish each step" in shown(pages, "/flows")
    assert "publish each step" in shown(pages, "/flows/1", 404)
    assert "stands still" not in shown(pages, "/")
    shown(pages, f"/messages/{waiting}")


def test_a_filtered_list_looks_at_some_and_goes_on(
    pages: Dashboard, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_flow, "LOOK_FLOWS", 3)
    for number in range(10):
        with queue.flow(f"flow {number}", queue="rare" if number == 1 else "often") as flow:
            flow.add(number, delay=3600)
    found: list[str] = []
    asked, before = 0, None
    while asked == 0 or before is not None:
        page = queue.flows.list(queue="rare", before=before, limit=2)
        assert page.looked <= 3
        found, before, asked = [*found, *(one.name for one in page)], page.next, asked + 1
    assert (found, asked) == (["flow 1"], 4)
    assert "No flow among the 3 that were looked at: go on below" in shown(
        pages, "/flows?queue=rare"
    )
    names, before = [], None
    for _ in range(9):
        page = queue.flows.list(queue="often", before=before, limit=1)
        names.append(page[0].name)
        before = page.next
    assert names == [f"flow {n}" for n in (9, 8, 7, 6, 5, 4, 3, 2, 0)]


def node(id: int, parents: tuple[int, ...] = (), **values: Any) -> NodeInfo:
    about = {"kind": "k", "state": "waiting", "channel": "c"} | values
    return NodeInfo(
        id, "q", about["channel"], about["kind"], "completed", about["state"], None, parents
    )


def test_boxes_do_not_overlap_and_dead_ones_are_on_top() -> None:
    nodes = [node(n, state="dead" if n == 30 else "completed") for n in range(1, 61)]
    nodes += [node(n, (n - 60, n - 59)) for n in range(61, 100)]
    drawing = draw_nodes(nodes, lambda id: f"messages/{id}")
    places = {(box.x, box.y) for box in drawing.boxes}
    assert len(places) == len(drawing.boxes) == 99
    columns = sorted({box.x for box in drawing.boxes})
    assert all(after - before > 164 for before, after in pairwise(columns))
    assert max(box.x for box in drawing.boxes) + 164 < drawing.width
    assert max(box.y for box in drawing.boxes) + 44 < drawing.height
    dead = next(box for box in drawing.boxes if box.state == "dead")
    assert (dead.x, dead.y) == min(places)
    assert (dead.second, dead.href) == ("dead letter · 30", "messages/30")
    assert len(drawing.edges) == 78
    crowded = [node(n, tuple(range(1, n))) for n in range(1, 101)]
    assert draw_nodes(crowded, str).left_out == 99 * 50 - 1000


def test_a_large_flow_is_drawn_in_groups() -> None:
    nodes = [node(1, kind="list", state="completed")]
    nodes += [node(n, (1,), kind="fetch") for n in range(2, 1500)]
    nodes += [node(1500, (1,), kind="fetch", state="dead")]
    nodes += [node(n, (n - 1499,), kind="store", state="held") for n in range(1501, 2001)]
    assert steps_of(nodes)[2000] == 2
    groups = group_nodes(nodes)
    assert [(g.step, g.kind, g.nodes) for g in groups] == [
        (0, "list", 1),
        (1, "fetch", 1499),
        (2, "store", 500),
    ]
    assert groups[1].states == [("dead letter", 1), ("waiting", 1498)]
    later = [FlowLink("child", 9000, "q", "c", "merge", "held")]
    drawing = draw_groups(nodes, groups, later)
    assert [(box.first, box.second, box.state) for box in drawing.boxes] == [
        ("list \u00d7 1", "completed", "completed"),
        ("fetch \u00d7 1,499", "1 dead letter", "dead"),
        ("store \u00d7 500", "held", "held"),
        ("merge", "held · 9000", "held"),
    ]
    assert len(drawing.edges) == 3


def limits_form(pages: Dashboard, path: str, channel: str) -> dict[str, str]:
    """The fields of the form in the row of a channel, as a browser without scripts sends them."""
    forms = re.findall(r"<form(.*?)</form>", ask(pages, path), re.S)
    found = [form for form in forms if 'value="limit"' in form and f'value="{channel}"' in form]
    assert len(found) == 1
    return dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', found[0]))


def test_a_row_changes_only_what_was_edited(pages: Dashboard, queue: Queue) -> None:
    queue.publish(1, channel="tenant-1")
    queue.channel("tenant-1").limit(concurrency=2, rate=5)
    form = limits_form(pages, "/channels", "tenant-1")
    queue.channel("tenant-1").limit(concurrency=9, backlog=100)  # by somebody else, meanwhile
    done = press(pages, **(form | {"rate": "7.5"}))
    assert done.status == 303
    policy = queue.channel("tenant-1").policy()
    assert (policy.concurrency, policy.rate, policy.backlog) == (9, 7.5, 100)
    (entry,) = queue.audit()
    assert entry.target["limits"] == {"rate": 7.5}
    # Undo writes back only that one too.
    mark = parse_qs(done.headers["location"].partition("?")[2])["done"][0]
    undo = pages._results.read(mark, "local")
    assert undo is not None
    assert undo.fields == {"channel": "tenant-1", "queue": "default", "rate": "5"}
    # An emptied field removes that limit, an emptied weight is the default one.
    form = limits_form(pages, "/channels", "tenant-1")
    press(pages, **(form | {"rate": "", "weight": ""}))
    policy = queue.channel("tenant-1").policy()
    assert (policy.concurrency, policy.rate, policy.weight) == (9, None, 1)
    rows = len(queue.audit())
    same = press(pages, **limits_form(pages, "/channels", "tenant-1"))
    mark = parse_qs(same.headers["location"].partition("?")[2])["done"][0]
    unchanged = pages._results.read(mark, "local")
    assert unchanged is not None
    assert "Nothing was changed" in unchanged.text
    assert len(queue.audit()) == rows


def held_by_a_limit(queue: Queue) -> None:
    queue.limits["stripe"].set(concurrency=1)
    for number in range(3):
        queue.publish(number, channel="tenant-1", limits=["stripe"])
    assert len(queue.claim(10)) == 1


def test_shared_limits_say_what_runs_and_why_others_wait(pages: Dashboard, queue: Queue) -> None:
    held_by_a_limit(queue)
    queue.publish(4, channel="tenant-2", limits=["<script>typo</script>"])
    assert queue.claim(10)
    text = shown(pages, "/limits")
    assert "limit stripe: 1 of 1 running" in text
    assert "nobody has set it" in text
    assert "<script>typo" not in ask(pages, "/limits")
    form = {"verb": "set_shared_limit", "back": "limits", "name": "stripe", "was_concurrency": "1"}
    done = press(pages, **(form | {"concurrency": "2", "rate": "", "was_rate": ""}))
    assert done.status == 303 and queue.limits["stripe"].get().concurrency == 2
    mark = parse_qs(done.headers["location"].partition("?")[2])["done"][0]
    undo = pages._results.read(mark, "local")
    assert undo is not None and undo.fields == {"name": "stripe", "concurrency": "1"}
    same = press(pages, **(form | {"concurrency": "1"}))
    mark = parse_qs(same.headers["location"].partition("?")[2])["done"][0]
    unchanged = pages._results.read(mark, "local")
    assert unchanged is not None and "Nothing was changed" in unchanged.text


def test_shared_limits_show_and_set_what_adapts_and_breaks(pages: Dashboard, queue: Queue) -> None:
    held_by_a_limit(queue)
    form = {"verb": "set_shared_limit", "back": "limits", "name": "stripe"}
    empty = {f"was_{name}": "" for name in ("adapt_min", "adapt_max", "failures", "window")}
    done = press(pages, **form, **empty, adapt_min="1", adapt_max="8", failures="0.5", window="")
    found = queue.limits["stripe"].get()
    assert (done.status, found.adapt, found.breaker) == (303, Adapt(1, 8), Breaker())
    mark = parse_qs(done.headers["location"].partition("?")[2])["done"][0]
    undo = pages._results.read(mark, "local")
    assert undo is not None and undo.fields is not None
    text = shown(pages, "/limits")
    assert "1 of 1" in text and "closed" in text and 'name="adapt_max"' in ask(pages, "/limits")
    assert press(pages, **form, minimum="1", was_minimum="10").status == 303
    (entry,) = [e for e in queue.audit() if "minimum" in str(e.target)]
    assert entry.action == "set_shared_limit"
    press(pages, **{**undo.fields, "verb": "set_shared_limit", "back": "limits"})
    assert queue.limits["stripe"].get() == replace(found, adapt=None, adapted=None, breaker=None)


def new_limit_form(page: str) -> dict[str, str]:
    """The fields of the form for a new shared limit, as a browser without scripts sends them."""
    (form,) = re.findall(r'<form[^>]*id="new-limit"(.*?)</form>', page, re.S)
    return dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', form))


def test_a_new_shared_limit_may_adapt_and_have_a_breaker(pages: Dashboard, queue: Queue) -> None:
    form = new_limit_form(ask(pages, "/limits"))
    assert {name for name in form if f"was_{name}" in form} == set(SETTINGS)
    rule = {"failures": "0.2", "window": "1m", "minimum": "20", "pause": "120"}
    done = press(pages, **(form | rule | {"name": "bank", "adapt_min": "2", "adapt_max": "9"}))
    assert done.status == 303
    found = queue.limits["bank"].get()
    assert (found.adapt, found.breaker) == (Adapt(2, 9), Breaker(0.2, 60, 20, 120))
    assert (found.concurrency, found.rate, found.burst) == (None, None, None)
    bounds = {"adapt_min": 2, "adapt_max": 9}
    rule_noted = {"failures": 0.2, "window": 60, "minimum": 20, "pause": 120}
    (entry,) = queue.audit()
    assert (entry.action, entry.source) == ("set_shared_limit", "dashboard")
    assert entry.target == {"name": "bank", "limits": bounds | rule_noted}
    # Empty fields are none of it; of a breaker the others have their defaults.
    press(pages, **(form | {"name": "mail", "concurrency": "3"}))
    found = queue.limits["mail"].get()
    assert (found.concurrency, found.adapt, found.breaker) == (3, None, None)
    press(pages, **(form | {"name": "post", "minimum": "4"}))
    assert queue.limits["post"].get().breaker == Breaker(minimum=4)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"adapt_min": "few"}, "“Adapts from” must be a whole number, not 'few'."),
        ({"adapt_min": "9", "adapt_max": "2"}, "Adapt cannot range from 9 to 2"),
        ({"adapt_min": "9"}, "between two bounds: give “Adapts up to” too."),
        (
            {"failures": "50"},
            "“Share that failed” is 50.0: it must be a share above 0 and at most 1",
        ),
        ({"window": "soon"}, "“Seconds looked at” must be like 90, 15m"),
        ({"pause": "9d"}, "“Seconds of pause” is 777600.0 seconds"),
        ({"minimum": "0"}, "“Attempts at least” is 0: it must be a whole number"),
        ({"concurrency": "0"}, "“At once” is 0: leave it empty"),
        ({"burst": "5"}, "“Burst” goes with rate"),
        ({"rate": "<b>fast</b>"}, "“Starts a second” must be a number, not"),
        ({"name": "a,b", "rate": "1"}, "has a comma"),
        ({}, "Nothing was set: fill in at least one field beside the name."),
    ],
)
def test_a_wrong_new_limit_keeps_what_was_typed(
    pages: Dashboard, queue: Queue, typed: dict[str, str], said: str
) -> None:
    form = new_limit_form(ask(pages, "/limits?search=ten"))
    given = form | {"name": "bank", "adapt_max": "", "was_adapt_max": ""} | typed
    answer = press(pages, **given)
    page = answer.body.decode()
    assert answer.status == 400
    (alert,) = re.findall(r'<p class="notice warn" role="alert">(.*?)</p>', page)
    assert said in unescape(alert)
    again = {name: unescape(value) for name, value in new_limit_form(page).items()}
    assert again == given and "<b>fast" not in page
    assert not queue.limits.list() and not queue.audit()


def test_a_wrong_row_of_a_shared_limit_keeps_what_was_typed(pages: Dashboard, queue: Queue) -> None:
    queue.limits["stripe"].set(concurrency=4, rate=5)
    queue.limits["bank"].set(concurrency=4)
    row = {"verb": "set_shared_limit", "back": "limits", "name": "stripe"}
    row |= {"rate": "5", "was_rate": "5", "failures": "two", "was_failures": ""}
    queue.limits["stripe"].set(rate=7)  # by somebody else, after the page was made
    answer = press(pages, **row)
    page = answer.body.decode()
    assert answer.status == 400 and "“Share that failed” must be a number" in page
    cells = dict(re.findall(r'aria-label="([^"]*)" value="([^"]*)"', page))
    assert (
        cells["Share that failed of stripe"] == "two" and cells["Starts a second of stripe"] == "7"
    )
    assert cells["Share that failed of bank"] == ""
    assert new_limit_form(page)["failures"] == ""


def test_who_may_set_limits_and_see_none_is_told_what_is_wrong(queue: Queue) -> None:
    principal = Principal("setter", frozenset({Right.LIMIT}))
    made = Dashboard(queue, principal=partial(_known_as, principal))
    form = {"verb": "set_shared_limit", "back": "limits", "new": "yes", "name": "bank"}
    answer = press(made, **form, adapt_min="few")
    made.close()
    assert answer.status == 400 and b"must be a whole number" in answer.body


def test_a_breaker_that_is_open_says_so(pages: Dashboard, queue: Queue) -> None:
    queue.limits["stripe"].set(breaker=Breaker(minimum=1))
    for number in range(2):
        queue.publish(number, channel="tenant-1", limits=["stripe"])
    queue.claim()[0].fail("no")
    assert not queue.claim()
    text = shown(pages, "/limits")
    assert "open since" in text and "1 of 1 failed" in text
    assert "breaker open until" in text


def test_removing_a_shared_limit_asks(pages: Dashboard, queue: Queue) -> None:
    held_by_a_limit(queue)
    form = {"verb": "remove_shared_limit", "back": "limits", "name": "stripe"}
    assert b"Yes, remove the limit" in press(pages, **form).body
    assert queue.limits["stripe"].get().concurrency == 1
    assert press(pages, **form, sure="yes").status == 303
    assert not queue.limits["stripe"].get().limited


def _known_as(principal: Principal, request: object) -> Principal:
    return principal


def test_shared_limits_are_for_those_who_may_see_all_channels(queue: Queue) -> None:
    held_by_a_limit(queue)
    for principal, buttons in (
        (Principal("scoped", ADMIN, channel_prefixes=("tenant-9",)), None),
        (Principal("viewer", frozenset({Right.VIEW})), False),
        (Principal("admin", ADMIN), True),
    ):
        made = Dashboard(queue, principal=partial(_known_as, principal))
        text = ask(made, "/limits")
        made.close()
        assert ("stripe" in text) == (buttons is not None)
        assert ("set_shared_limit" in text) == bool(buttons)
