"""The dashboard in a real browser: every page, every action, light, dark, narrow, by keyboard."""

import re
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from laneway import NewMessage, Queue
from laneway.dev.embedded import free_port
from laneway.limits import Adapt, Breaker
from laneway.operator import VIEWER, Principal
from laneway.web import dashboard
from tests.place import Place
from tests.stores import Databases
from tests.web.browser import FLAGS, NO_CHROMIUM, chromium, mounted, serving
from tests.web.hostile_names import HOSTILE

HERE = Path(__file__).parent
WATCH = (HERE / "watch.js").read_text()
CONTRAST = (HERE / "contrast.js").read_text()
# Buttons, headings and drop-downs whose text does not fit; the longest option counts.
CUT_OFF = """() => Array.from(document.querySelectorAll("button, .button, h1, h2, dt, dd, select"))
  .filter(e => e.getClientRects().length && getComputedStyle(e).clipPath === "none")
  .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
  .map(e => e.tagName + ": " + e.textContent.trim().slice(0, 60))"""
# Those in drawings too, whose property href is no text.
LINKS = "all => all.map(a => new URL(a.getAttribute('href'), location.href).href.split('#')[0])"
PAGES = (
    "",
    "queue?name=default",
    "channels",
    "channel?channel=tenant-1",
    "messages",
    "messages/1",
    "dead-letters",
    "dead-letters/bulk?action=redrive",
    "flows",
    "flows/1",
    "flows/2",
    "messages/78",
    "schedules",
    "topics",
    "limits",
    "workers",
    "system",
    "audit",
    "nothing-here",
)


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path_factory.mktemp('web') / 'queue.db'}") as client:
        client.install()
        fill(client)
        yield client


def fill(client: Queue) -> None:
    """Something for every page, with one dead letter for each action that ends one."""
    client.publish_many(
        [NewMessage({"n": n}, channel=f"tenant-{n % 5}", kind="job") for n in range(60)]
    )
    client.publish_many(
        [NewMessage(n, channel="tenant-1", kind="bad", queue="letters") for n in range(12)]
    )
    for message in client.claim(limit=12, queues=["letters"]):
        message.fail(reason="no such customer", error=ValueError("customer 7 does not exist"))
    client.publish({"later": True}, channel="tenant-9", delay=3600)
    client.channel("tenant-2").limit(concurrency=1, rate=5)
    client.channel("tenant-3").pause()
    client.schedule("nightly", {"n": 1}, every=timedelta(hours=1), kind="report")
    client.topic("orders").subscribe("letters")
    client.claim(limit=3)
    fill_flows(client)


def fill_flows(client: Queue) -> None:
    """One that stands still, with a node that has run, a dead one and two that are held; one that
    is too large to be drawn node by node."""
    if "flows" in client.database.engine.lacks:
        return
    with client.flow("import:42", queue="imports", channel="tenant-1") as flow:
        pages = [flow.add({"n": n}, kind="fetch") for n in range(4)]
        merged = flow.add("merge", kind="merge", after=pages)
        flow.add("tell", kind="tell", after=merged, when="ended")
    for message in client.claim(limit=4, queues=["imports"]):
        if message.id == pages[0].id:
            message.fail(reason="no such page", error=LookupError("page 0 is gone"))
        else:
            message.complete()
    with client.flow("statements", queue="wide", channel="tenant-2") as flow:
        parts = [flow.add(n, kind="statement", delay=3600) for n in range(210)]
        flow.add("send", kind="send", after=parts)


@pytest.fixture(scope="module")
def address(queue: Queue) -> Iterator[str]:
    apps = {
        "all": dashboard(queue, trust_local=True),
        "viewer": dashboard(queue, principal=lambda request: Principal("vera", VIEWER)),
    }
    with serving(mounted(**apps)) as base:
        yield f"{base}/all/of/it/"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Queue, str]]:
    """A queue of the test's own, filled alike, and its address: for a test that changes it."""
    with Queue(f"sqlite:///{tmp_path / 'queue.db'}") as client:
        client.install()
        fill(client)
        with serving(mounted(all=dashboard(client, trust_local=True))) as base:
            yield client, f"{base}/all/of/it/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        warnings.warn(NO_CHROMIUM, stacklevel=1)
        pytest.skip(NO_CHROMIUM)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield running
        running.close()


class Window:
    """A tab that writes down what must not happen."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(25_000)
        self.context.add_init_script(WATCH)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", self._failed)
        self.page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _failed(self, error: Exception) -> None:
        self.errors.append(str(error))

    def _dialog(self, dialog: Dialog) -> None:
        self.errors.append("a dialog")
        dialog.dismiss()

    def check(self) -> None:
        """Nothing was blocked, nothing ran that is not ours, nothing failed to load."""
        seen = self.page.evaluate("window.__seen") if "about:" not in self.page.url else []
        known = [e for e in self.errors if "status of 4" not in e]  # the pages that must be 4xx
        assert (seen, known) == ([], [])


@pytest.fixture
def window(browser: Browser) -> Iterator[Window]:
    made = Window(browser, viewport={"width": 1280, "height": 800})
    yield made
    made.check()
    made.context.close()


_AGAIN = pytest.mark.repeats("each scheme and each width is tested once")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=_AGAIN),
        pytest.param(390, "light", marks=_AGAIN),
        pytest.param(2560, "light", marks=_AGAIN),
    ],
)
def test_every_page(browser: Browser, address: str, scheme: Any, width: int) -> None:
    made = Window(browser, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for path in PAGES:
        answer = made.page.goto(address + path)
        assert answer is not None
        assert answer.status < 500
        assert made.page.locator("h1").count() == 1, path
        assert made.page.evaluate(CONTRAST) == [], path
        wide = made.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} px wide"
        assert made.page.evaluate(CUT_OFF) == [], f"{path} cuts off"
        made.check()
    made.context.close()


def test_the_theme_can_be_chosen(window: Window, address: str) -> None:
    window.page.goto(address)
    before = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    window.page.click("#theme")
    after = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    window.page.goto(address + "channels")
    assert window.page.evaluate("getComputedStyle(document.body).backgroundColor") == after
    assert window.page.evaluate(CONTRAST) == []


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no scripts", marks=pytest.mark.repeats("with scripts here")),
    ],
)
def test_every_action(browser: Browser, own: tuple[Queue, str], scripts: bool) -> None:
    queue, address = own
    made = Window(browser, viewport={"width": 1280, "height": 800}, java_script_enabled=scripts)
    page = made.page
    result = page.locator("#result")

    page.goto(address + "channel?channel=tenant-4")
    page.click("button:text-is('Pause')")
    assert "is paused" in result.inner_text()
    assert queue.channel("tenant-4").policy().paused
    page.click("#result button")  # undo
    assert "starts messages again" in result.inner_text()
    assert not queue.channel("tenant-4").policy().paused

    page.fill("[name=concurrency]:visible", "7")
    page.fill("[name=rate]:visible", "2.5")
    page.click("text=Save limits")
    assert queue.channel("tenant-4").policy().concurrency == 7
    assert queue.channel("tenant-4").policy().rate == 2.5
    page.click("text=Restore the old limits")
    assert queue.channel("tenant-4").policy().concurrency is None
    page.fill("[name=rate]:visible", "fast")
    page.click("text=Save limits")
    assert "must be a number" in page.locator("[role=alert]:visible").inner_text()

    queue.limits["stripe"].set(concurrency=4)  # before the page is asked for: answers are shared
    page.goto(address + "limits")
    row = page.locator("tr", has_text="tenant-2")
    row.locator("[name=concurrency]").fill("3")
    row.locator("button").click()
    assert queue.channel("tenant-2").policy().concurrency == 3
    assert queue.channel("tenant-2").policy().rate == 5, "only what was changed"

    page.goto(address + "limits")
    row = page.locator("tr", has_text="stripe")
    row.locator("[name=rate]").fill("6")
    row.locator("button:text-is('Save')").click()
    assert "Limit “stripe” is changed" in result.inner_text()
    stripe = queue.limits["stripe"].get()
    assert (stripe.concurrency, stripe.rate, stripe.burst) == (4, 6, 6)
    page.click("text=Restore the old limits")
    assert queue.limits["stripe"].get().rate is None
    page.locator("tr", has_text="stripe").locator("button:text-is('Remove …')").click()
    page.click("button:has-text('Yes, remove the limit')")
    assert not queue.limits["stripe"].get().limited

    form = page.locator("#new-limit")
    form.get_by_label("Limit").fill("bank")
    form.get_by_label("Adapts from").fill("2")
    form.get_by_label("Adapts up to").fill("9")
    form.get_by_label("Share that failed").fill("50")
    form.get_by_label("Seconds of pause").fill("2m")
    form.locator("button").click()
    assert (
        "“Share that failed” is 50.0: it must be a share above 0"
        in page.locator("[role=alert]:visible").inner_text()
    )
    assert form.get_by_label("Adapts up to").input_value() == "9"
    assert page.evaluate("document.activeElement.name") == "failures" or not scripts
    if scripts:
        assert page.evaluate(CONTRAST) == [] and page.evaluate(CUT_OFF) == []
    form.get_by_label("Share that failed").fill("0.2")
    form.locator("button").click()
    assert "Limit “bank” is set" in result.inner_text()
    bank = queue.limits["bank"].get()
    assert (bank.adapt, bank.breaker) == (Adapt(2, 9), Breaker(0.2, pause=120))
    row = page.locator("tr", has_text="bank")
    row.locator("summary").click()
    row.locator("[name=minimum]").fill("none")
    row.locator("button:text-is('Save')").click()
    assert (
        "“Attempts at least” must be a whole" in page.locator("[role=alert]:visible").inner_text()
    )
    assert row.locator("[name=minimum]:visible").input_value() == "none"
    row.locator("[name=minimum]").fill("7")
    row.locator("button:text-is('Save')").click()
    assert queue.limits["bank"].get().breaker == Breaker(0.2, minimum=7, pause=120)
    queue.limits["bank"].remove()

    page.goto(address + "channels?queue=default&search=tenant-2")
    queue.channel("tenant-2").limit(backlog=900)  # by somebody else, after the page was made
    row = page.locator("tr", has_text="tenant-2")
    row.locator("summary").click()
    row.locator("[name=rate]").fill("8")
    row.locator("button:text-is('Save')").click()
    assert "limits of channel “tenant-2” are changed" in result.inner_text()
    policy = queue.channel("tenant-2").policy()
    assert (policy.concurrency, policy.rate, policy.backlog) == (3, 8, 900)
    page.click("text=Restore the old limits")
    policy = queue.channel("tenant-2").policy()
    assert (policy.concurrency, policy.rate, policy.backlog) == (3, 5, 900)

    waiting = queue.messages(state="waiting", channel="tenant-0", limit=1)[0].id
    page.goto(address + f"messages/{waiting}")
    page.click("button:has-text('Cancel')")
    page.click("text=No, go back")
    assert queue.message(waiting) is not None
    page.click("button:has-text('Cancel')")
    page.click("button:has-text('Yes, cancel')")
    assert "1 cancelled" in result.inner_text()
    assert queue.message(waiting) is None

    page.goto(address + "queue?name=letters")
    bottom = page.locator("section.buttons")
    bottom.locator("select").select_option("1h")
    bottom.locator("[name=reason]").fill("the relay is down")
    bottom.locator("text=Pause").click()
    assert "is paused for 1h" in result.inner_text()
    (pause,) = queue.pauses(queue="letters")
    assert (pause.reason, pause.actor) == ("the relay is down", "local")
    page.goto(address)
    assert "Queue “letters” is paused" in page.inner_text("main")
    problem = page.locator("article", has_text="Queue “letters” is paused")
    problem.locator("button:text-is('Resume')").click()
    assert "starts messages again" in result.inner_text()
    assert not queue.pauses()
    page.click("#result button")  # undo
    page.goto(address + "queue?name=letters")
    page.click(".notice button:text-is('Resume')")
    assert not queue.pauses()
    page.goto(address)
    problem = page.locator("article", has_text="Channel “tenant-3” is paused")
    problem.locator("button:text-is('Resume')").click()
    assert not queue.channel("tenant-3").policy().paused
    queue.channel("tenant-3").pause()

    later = queue.publish(1, channel="tenant-8", delay=3600).id
    page.goto(address + f"messages/{later}")
    page.click("text=Run now")
    assert "Due now" in result.inner_text()
    info = queue.message(later or 0)
    assert info is not None
    assert info.state == "waiting"

    letters = [letter.id for letter in queue.dead_letters.list(queue="letters")]
    page.goto(address + "dead-letters")
    page.locator("tr", has_text=f"{letters[0]}").first.locator("text=Redrive").click()
    assert "1 dead letter put back" in result.inner_text()
    page.locator("tr", has_text=f"{letters[1]}").first.locator("text=Discard").click()
    page.click("button:has-text('Yes, discard')")
    assert "discarded for good" in result.inner_text()
    assert len(queue.dead_letters.list(queue="letters")) == len(letters) - 2

    page.goto(address + "dead-letters/bulk?action=discard&queue=letters&reason=none")
    assert "Nothing matches" in page.inner_text("main")

    page.goto(address + "schedules")
    for button, said in (
        ("Pause", "is paused"),
        ("Resume", "goes on"),
        ("Run now", "published its message"),
    ):
        page.click(f"td button:text-is('{button}')")
        assert said in result.inner_text()
    page.goto(address + "topics")
    page.fill("[name=topic]:visible", "orders")
    page.fill("[name=queue]:visible", "other")
    page.click("button:text-is('Subscribe')")
    assert ("orders", "other") in {(s.topic, s.queue) for s in queue.subscriptions()}
    page.locator("tr", has_text="other").locator("text=Unsubscribe").click()
    page.click("button:has-text('Yes, unsubscribe')")
    assert ("orders", "other") not in {(s.topic, s.queue) for s in queue.subscriptions()}
    page.goto(address + "flows?state=dead")
    page.click("text=import:42")
    assert "1 dead letter holds 2 nodes" in page.inner_text("main")
    assert "page 0 is gone" in page.inner_text("main")
    page.click("button:text-is('Redrive 1 …')")
    assert "import:42" in page.inner_text("main")
    page.click("button:has-text('Yes, redrive')")
    assert "1 dead letter put back" in result.inner_text()
    assert queue.flows.get(1).state == "running"
    page.click("text=Cancel the flow …")
    page.click("text=No, go back")
    assert queue.flows.get(1).state == "running"
    page.click("text=Cancel the flow …")
    page.click("button:has-text('Yes, cancel')")
    assert "nothing more of it begins" in result.inner_text()
    assert queue.flows.get(1).state == "cancelled"

    page.goto(address + "queue?name=letters")
    page.locator("tr", has_text="bad").locator("button:text-is('Pause')").click()
    assert "Kind “bad” of queue “letters” is paused" in result.inner_text()
    page.click("#result button")  # undo
    assert not queue.pauses()
    operation = queue.operations.start("redrive", reason="of nobody", expected=0)
    page.goto(address + "dead-letters")
    page.locator(".notice", has_text="Redrive running").locator("button").click()
    assert "Cancelled" in result.inner_text()
    assert queue.operations.get(operation.id).state == "cancelled"
    queue.schedule("for once", {"n": 1}, every=timedelta(hours=1))
    page.goto(address + "schedules")
    page.locator("tr", has_text="for once").locator("text=Remove …").click()
    page.click("button:has-text('Yes, remove')")
    assert [one.name for one in queue.schedules.list()] == ["nightly"]
    page.goto(address + "channel?channel=tenant-8")
    page.click("text=Remove …")
    page.click("button:has-text('Yes, remove')")
    assert queue.channel("tenant-8").policy().closing

    page.goto(address + "audit")
    shown = page.inner_text("table")
    for action in ("redrive flow", "cancel flow", "cancel operation", "remove schedule"):
        assert action in shown, action
    for action in ("unsubscribe", "discard", "redrive", "cancel", "run now", "limit", "pause"):
        assert action in page.inner_text("table"), action
    if scripts:
        made.check()
    made.context.close()


def test_bulk_needs_the_count(window: Window, address: str, queue: Queue) -> None:
    page = window.page
    count = len(queue.dead_letters.list(queue="letters"))
    page.goto(address + "dead-letters?queue=letters")
    page.click("text=Redrive all of these")
    assert f"{count} dead letter" in page.inner_text("h1")
    page.fill("[name=typed]", "1000")
    page.click("button:text-is('Redrive')")
    assert "nothing was done" in page.inner_text("main")
    assert len(queue.dead_letters.list(queue="letters")) == count
    page.go_back()
    page.fill("[name=typed]", str(count))
    page.click("button:text-is('Redrive')")
    page.wait_for_selector("#result")
    deadline = time.monotonic() + 20
    while queue.dead_letters.list(queue="letters") and time.monotonic() < deadline:
        queue.upkeep()
        time.sleep(0.1)
    assert not queue.dead_letters.list(queue="letters")


@pytest.mark.repeats("every action with a mouse here")
def test_by_keyboard_alone(window: Window, address: str, queue: Queue) -> None:
    page = window.page
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"

    def tab_to(text: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            focused = page.evaluate("document.activeElement.textContent.trim()")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"{focused} does not show its focus"
            if focused == text:
                return
        raise AssertionError(f"{text} cannot be reached")

    tab_to("Channels")
    page.keyboard.press("Enter")
    page.wait_for_url("**/channels")
    tab_to("tenant-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/channel?**")
    tab_to("Pause")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result")
    assert queue.channel("tenant-1").policy().paused
    tab_to("Resume it")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=starts messages again")
    assert not queue.channel("tenant-1").policy().paused

    page.goto(address + "channels?queue=default&search=tenant-1")
    tab_to("none")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result")
    assert queue.channel("tenant-1").policy().concurrency == 4

    with queue.flow("by keyboard", queue="keys") as flow:
        flow.add("after", kind="after", after=flow.add("first", kind="first"))
    for message in queue.claim(queues=["keys"]):
        message.fail("no")
    page.goto(address + "flows")
    tab_to("by keyboard")
    page.keyboard.press("Enter")
    page.wait_for_url("**/flows/*")
    tab_to("Redrive 1 …")
    page.keyboard.press("Enter")
    page.wait_for_selector("button:has-text('Yes, redrive')")
    page.keyboard.press("Enter")  # the button has the focus
    page.wait_for_selector("#result")
    assert flow.id is not None
    assert queue.flows.get(flow.id).state == "running"
    held = page.evaluate("document.querySelector('.graph a:last-of-type title').textContent")
    assert "held" in held
    page.goto(address + f"flows/{flow.id}")
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.closest('.graph a')?.textContent")
        if "held" in (focused or ""):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/messages/*")
    assert "1 of what it comes after has not ended yet" in page.inner_text("main")


def test_numbers_change_without_a_reload(window: Window, address: str, queue: Queue) -> None:
    page = window.page
    page.goto(address + "channels?search=lively")
    page.wait_for_selector("text=No channel")
    queue.publish(1, channel="lively")
    page.wait_for_selector("th:has-text('lively')")
    # Somebody copies a name: it must not be taken away.
    page.evaluate("getSelection().selectAllChildren(document.querySelector('tbody th'))")
    queue.publish_many([NewMessage(n, channel="lively") for n in range(40)])
    page.wait_for_timeout(3500)
    assert "41" not in page.inner_text("#channels")
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("td:has-text('41')", timeout=25_000)
    # The focus stays on a link that is drawn again.
    page.locator("tbody th a").first.focus()
    queue.publish(1, channel="lively")
    page.wait_for_selector("td:has-text('42')", timeout=25_000)
    assert page.evaluate("document.activeElement.textContent") == "lively"


@pytest.mark.repeats("waits for seconds in which nothing may happen")
def test_a_hidden_tab_asks_for_nothing(window: Window, address: str, queue: Queue) -> None:
    page = window.page
    page.goto(address + "flows?queue=unseen")
    page.wait_for_selector("text=No flow")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    with queue.flow("unseen", queue="unseen") as flow:
        flow.add(1, delay=3600)
    page.wait_for_timeout(7000)
    assert page.locator("tbody th").count() == 0
    page.evaluate("delete document.hidden")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector("th:has-text('unseen')", timeout=25_000)


def test_a_viewer_gets_no_buttons(window: Window, address: str) -> None:
    base = address.replace("/all/", "/viewer/")
    for path in PAGES:
        window.page.goto(base + path)
        assert window.page.locator("form[method=post]").count() == 0, path
    window.page.goto(base + "messages/2")
    assert "You may not see payloads" in window.page.inner_text("main")


def test_links_stay_below_the_mount(window: Window, address: str) -> None:
    page, todo = window.page, [address]
    found: set[str] = set()
    places = {address}
    while todo and len(found) < 40:
        url = todo.pop(0)
        if url in found:
            continue
        found.add(url)
        answer = page.goto(url)
        assert answer is not None
        assert answer.status in (200, 400), url
        if "json" in answer.headers["content-type"]:
            continue
        links = page.eval_on_selector_all("a[href]", LINKS)
        assert all(link.startswith(address) for link in links)
        for link in links:
            place = re.sub(r"\d+", "0", link.split("?")[0])
            if place not in places:
                places.add(place)
                todo.append(link)
    assert len(found) > 10


@pytest.mark.repeats("regions fetch themselves again in the test of changing numbers")
@pytest.mark.parametrize("page", ["channels?search=cut", "flows?queue=cut"])
def test_a_cut_connection_is_said_and_mended(browser: Browser, queue: Queue, page: str) -> None:
    port = free_port()
    made = Window(browser, viewport={"width": 1280, "height": 800})
    with serving(dashboard(queue, trust_local=True), port) as base:
        made.page.goto(f"{base}/{page}")
        assert not made.page.locator("#connection").is_visible()
    made.page.wait_for_selector("#connection:visible", timeout=25_000)
    assert "from before" in made.page.inner_text("#connection")
    with queue.flow("cut off", queue="cut", channel="cut") as flow:
        flow.add(1, delay=3600)
    with serving(dashboard(queue, trust_local=True), port):
        made.page.wait_for_selector("#connection:not(:visible)", state="attached", timeout=25_000)
        made.page.wait_for_selector("th:has-text('cut')", timeout=25_000)
        assert made.page.evaluate("window.__seen") == []
        made.context.close()


_ALL_MESSAGES = (*(f"messages?after={n}" for n in (50, 100, 150)), "messages/151", "messages/20")


@pytest.mark.repeats("names are escaped in tests/web/test_api.py too; all pages take 20 s")
def test_hostile_names_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """200 of them as channel, kind, key, header, payload, error, schedule and topic."""
    with Queue(f"sqlite:///{tmp_path / 'hostile.db'}") as client:
        client.install()
        client.publish_many(
            [
                NewMessage({name: name}, channel=name, kind=name, key=name, headers={name: name})
                for name in HOSTILE
            ]
        )
        for message in client.claim(limit=150):
            text = message.channel
            message.fail(reason=text, error=ValueError(text))
        for name in HOSTILE[:20]:
            client.schedule(name, name, every=3600, kind=name, channel=name)
            client.topic(name).subscribe(name, channel=name, kind=name)
            client.channel(name).limit(concurrency=1)
            client.publish(1, queue=name, channel=name)
            if "," not in name:
                client.limits[name[:25]].set(concurrency=1)
        flow_ids = hostile_flows(client)
        made = Window(browser, viewport={"width": 1280, "height": 800})
        with serving(dashboard(client, trust_local=True)) as base:
            flows = [f"flows/{id}" for id in flow_ids]
            for path in (*PAGES, "dead-letters/bulk?action=discard", *_ALL_MESSAGES, *flows):
                made.page.goto(f"{base}/{path}")
                made.check()
            for name in HOSTILE[::20]:
                asked = urlencode({"queue": "default", "channel": name, "search": name})
                for path in ("channel", "messages", "channels", "dead-letters"):
                    made.page.goto(f"{base}/{path}?{asked}", wait_until="domcontentloaded")
                    made.check()
            made.page.goto(f"{base}/channel?{urlencode({'channel': HOSTILE[0]})}")
            made.page.click("button:text-is('Pause')")
            made.page.wait_for_selector("#result")
            made.check()
            made.page.goto(f"{base}/flows/{flow_ids[-1]}")
            made.page.click("text=Cancel the flow …")
            made.check()
            made.page.click("button:has-text('Yes, cancel')")
            made.page.wait_for_selector("#result")
            made.check()
            assert made.page.evaluate("document.querySelectorAll('script').length") == 5
            made.context.close()


def hostile_flows(client: Queue) -> list[int]:
    """All names as kinds of nodes, of one flow of 100 that are drawn and one of 200 in groups; some
    as names of flows, queues and channels."""
    made = []
    for number, kinds in enumerate((HOSTILE[:100], [*HOSTILE, *HOSTILE[:20]])):
        with client.flow(HOSTILE[number], channel=HOSTILE[number], queue="hostile") as flow:
            flow.add(1, kind=HOSTILE[1], after=[flow.add(n, kind=n) for n in kinds[1:]])
        made.append(flow.id or 0)
    for message in client.claim(limit=5, queues=["hostile"]):
        message.fail(reason=message.kind, error=ValueError(message.kind))
    for name in HOSTILE[::10]:
        with client.flow(name, channel=name, queue=name) as flow:
            flow.add(name, kind=name, after=flow.add(name, kind=name))
        made.append(flow.id or 0)
    return made


@pytest.mark.repeats("on SQLite in the other tests here")
def test_on_postgresql(browser: Browser, place: Place) -> None:
    _walk(browser, place.url, place.schema)


@pytest.mark.repeats("on SQLite in the other tests here")
def test_on_mariadb(browser: Browser, mariadb: Databases) -> None:
    _walk(browser, mariadb.create_database("pages"), "laneway")


def _walk(browser: Browser, url: str, schema: str) -> None:
    """Every page, and an action."""
    with Queue(url, schema=schema) as client:
        client.install()
        fill(client)
        made = Window(browser, viewport={"width": 1280, "height": 800})
        with serving(dashboard(client, trust_local=True)) as base:
            for path in PAGES:
                answer = made.page.goto(f"{base}/{path}")
                assert answer is not None
                assert answer.status < 500
                made.check()
            made.page.goto(f"{base}/channel?channel=tenant-4")
            made.page.click("button:text-is('Pause')")
            made.page.wait_for_selector("#result")
            assert client.channel("tenant-4").policy().paused
            made.context.close()
