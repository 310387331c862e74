"""Lines that handlers log say which message they are about."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from laneway import AsyncMessage, Constant, Message, Worker
from laneway.worker.telemetry.logs import JsonFormatter, MessageContext
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client

log = logging.getLogger("shop.mail")


class Lines(logging.Handler):
    """What is logged, as a formatter writes it in the thread that logs."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("shop"):
            self.lines.append(self.format(record))


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[Lines]:
    handler = Lines(getattr(request, "param", None) or JsonFormatter())
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


@run_async
async def test_every_line_of_a_handler_names_its_message(place: Place, lines: Lines) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=2)

        @worker.handler("async", retry=Constant(every=0))
        async def in_loop(payload: int, message: AsyncMessage) -> None:
            log.info("begun", extra={"amount": payload, "text": "theirs"})
            await asyncio.create_task(helper())
            await asyncio.to_thread(log.info, "in another thread")
            if message.attempt == 1:
                raise ValueError

        @worker.handler("sync")
        def in_thread(payload: int, message: Message) -> None:
            log.info("begun", extra={"channel": "their own"})

        @worker.on_error
        def failed(message: Any, error: BaseException) -> None:
            log.info("reported")

        async def helper() -> None:
            log.info("in a task")

        first = await queue.publish(7, kind="async", channel="tenant-1")
        second = await queue.publish(8, kind="sync", channel="tenant-2")
        await worker.serve(until_empty=True)
        log.info("outside")

    found = [json.loads(line) for line in lines.lines]
    outside = found.pop()
    assert not {"message_id", "kind", "channel", "attempt"} & set(outside)
    seen = [(one["text"], one["message_id"], one["kind"], one["attempt"]) for one in found]
    for attempt in (1, 2):
        for text in ("begun", "in a task", "in another thread"):
            assert (text, first.id, "async", attempt) in seen
    assert ("reported", first.id, "async", 1) in seen
    assert ("begun", second.id, "sync", 1) in seen
    assert len(seen) == 8
    (sync,) = [one for one in found if one["kind"] == "sync"]
    assert (sync["channel"], sync["queue"]) == ("their own", "default")
    extra = next(one for one in found if one["text"] == "begun" and one["kind"] == "async")
    assert (extra["amount"], extra["extra_text"], extra["channel"]) == (7, "theirs", "tenant-1")


@run_async
async def test_lines_of_a_batch_name_its_kind(place: Place, lines: Lines) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.batch_task(size=3, wait=10)
        def send(payloads: list[int]) -> None:
            log.info("sending")

        for number in range(3):
            await queue.publish(number, kind="send")
        await worker.serve(until_empty=True)
    (line,) = map(json.loads, lines.lines)
    assert (line["kind"], line["messages"]) == ("send", 3) and "message_id" not in line


@pytest.mark.parametrize(
    "lines",
    [logging.Formatter("%(message_id)s %(kind)s: %(message)s", defaults={"message_id": "-"})],
    indirect=True,
)
@run_async
async def test_a_filter_for_formatters_of_ones_own(place: Place, lines: Lines) -> None:
    lines.addFilter(MessageContext())
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler
        def send(payload: int) -> None:
            log.info("sending", extra={"kind": "mail"})

        published = await queue.publish(1, kind="send")
        await worker.serve(until_empty=True)
        log.info("outside", extra={"kind": "none"})
    assert lines.lines == [f"{published.id} mail: sending", "- none: outside"]


@run_async
async def test_structlog_has_the_message_in_its_contextvars(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1)
        seen: list[dict[str, Any]] = []

        @worker.handler("async")
        async def in_loop(payload: int) -> None:
            seen.append(structlog.contextvars.get_contextvars())
            structlog.contextvars.bind_contextvars(user=payload)

        @worker.handler("sync")
        def in_thread(payload: int) -> None:
            seen.append(structlog.contextvars.get_contextvars())
            structlog.contextvars.bind_contextvars(user=payload)

        published = [await queue.publish(1, kind=kind) for kind in ("async", "sync") * 2]
        await worker.serve(until_empty=True)
    assert [one["message_id"] for one in seen] == [one.id for one in published]
    assert [one["kind"] for one in seen] == ["async", "sync"] * 2
    assert all(one["attempt"] == 1 and one["channel"] == "default" for one in seen)
    assert not any("user" in one for one in seen), (
        "what one handler binds is not there for the next"
    )


def test_structlog_is_not_imported_for_it() -> None:
    code = "import sys, laneway.worker; sys.exit('structlog' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
