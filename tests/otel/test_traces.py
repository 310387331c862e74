"""One trace from the publisher's request to the settled message."""

import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.trace import SpanKind

from laneway import AsyncQueue, Queue, Worker
from laneway.errors import BacklogFull, LeaseLost
from laneway.integrations.otel import instruments, traced, uninstrument
from tests.client.worlds import run_async
from tests.otel import handlers
from tests.otel.recording import (
    attributes,
    is_red,
    linked_ids,
    parent_id,
    recording,
    span_id,
    trace_id,
)
from tests.place import Place


def opened(place: Place) -> Queue:
    queue = Queue(place.url, schema=place.schema)
    queue.install()
    return queue


def test_a_handler_in_a_process_runs_in_the_trace(place: Place, tmp_path: Path) -> None:
    with recording() as found, opened(place) as queue:
        worker = Worker(queue, processes=1)
        worker.handler("note", run="process")(handlers.note_trace)
        files = [tmp_path / "first", tmp_path / "second"]
        for file in files:
            queue.publish(str(file), kind="note")
        worker.run(until_empty=True)
        seen = {tuple(file.read_text().split()) for file in files}
        spans = found.spans("process default")
    assert seen == {(f"{trace_id(span):032x}", f"{span_id(span):016x}") for span in spans}
    assert len(seen) == 2


def test_one_trace_from_the_request_to_the_settled_message(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        worker = Worker(queue)
        tracer = found.provider.get_tracer("test")

        @worker.handler("greet")
        async def greet(payload: str) -> None:
            with tracer.start_as_current_span("inside"):
                pass

        with tracer.start_as_current_span("request"):
            published = queue.publish("hello", kind="greet", channel="tenant-1")
        worker.run(until_empty=True)
        request, inside = found.span("request"), found.span("inside")
        send, process = found.span("send default"), found.span("process default")
        settle = found.span("complete default")

    assert {trace_id(span) for span in (request, send, process, inside, settle)} == {
        trace_id(request)
    }
    assert parent_id(send) == span_id(request)
    assert parent_id(process) == span_id(send) and linked_ids(process) == [span_id(send)]
    assert parent_id(inside) == span_id(process)
    assert parent_id(settle) == span_id(process)
    assert (send.kind, process.kind, settle.kind) == (
        SpanKind.PRODUCER,
        SpanKind.CONSUMER,
        SpanKind.CLIENT,
    )
    assert attributes(process) == {
        "messaging.system": "laneway",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": str(published.id),
        "messaging.laneway.channel": "tenant-1",
        "messaging.laneway.kind": "greet",
        "messaging.laneway.attempt": 1,
        "messaging.laneway.fence": attributes(settle)["messaging.laneway.fence"],
    }
    assert attributes(settle)["messaging.operation.type"] == "settle"
    assert attributes(send)["messaging.message.id"] == str(published.id)
    assert attributes(send)["server.address"] and attributes(send)["server.port"]
    assert not any(is_red(span) for span in (send, process, settle))


def test_the_names_are_those_of_the_conventions() -> None:
    """Against the constants of OpenTelemetry's own package."""
    theirs = {
        value for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")
    }
    ours = {
        value
        for value in vars(instruments).values()
        if isinstance(value, str) and value.startswith("messaging.")
    }
    own = {name for name in ours if name.startswith("messaging.laneway.")}
    metrics = {
        instruments.SENT,
        instruments.CONSUMED,
        instruments.OPERATION_DURATION,
        instruments.PROCESS_DURATION,
    }
    assert ours - own - metrics <= theirs
    types = {one.value for one in messaging_attributes.MessagingOperationTypeValues}
    assert {"send", "receive", "process", "settle"} <= types


def test_a_batch_has_one_span_whose_context_all_of_its_messages_carry(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        mine = traced({"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01", "mine": 1})
        queue.publish("its own", headers=mine)
        queue.publish_many(["a", "b"], queue="other")
        own, claimed = queue.claim(), queue.claim(10, queues=["other"])
        send, batch = found.span("send default"), found.span("send other")
        queue.complete(claimed)
        queue.complete(own)
        received, completed = found.span("receive other"), found.span("complete other")

    assert own[0].headers == mine, "a context that the publisher chose stays"
    assert send.kind is SpanKind.CLIENT and linked_ids(send) == [int("2" * 16, 16)]
    assert attributes(batch)["messaging.batch.message_count"] == 2
    assert batch.kind is SpanKind.PRODUCER
    assert linked_ids(received) == [span_id(batch)] * 2 == linked_ids(completed)
    assert received.kind is SpanKind.CLIENT
    assert parent_id(completed) is None, "a batch belongs to no single trace"


@run_async
async def test_the_async_client_and_topics(place: Place) -> None:
    with recording() as found:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            await queue.topic("orders").subscribe("receipts")
            await queue.topic("orders").publish({"order": 1})
            (message,) = await queue.claim(queues=["receipts"])
            await message.complete()
            assert not await queue.claim(queues=["receipts"])
        send = found.span("send orders")
        receive, complete = found.span("receive receipts"), found.span("complete receipts")
    assert linked_ids(receive) == [span_id(send)], "and none for the claim that brought nothing"
    assert trace_id(complete) == trace_id(send)


def test_refused_and_late_calls_are_red(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        queue.channel("small").limit(backlog=1)
        queue.publish("a", channel="small")
        with pytest.raises(BacklogFull):
            queue.publish("b", channel="small")
        (message,) = queue.claim()
        message.complete()
        with pytest.raises(LeaseLost):
            message.complete()
        refused = found.spans("send default")[1]
        late = found.spans("complete default")[1]
    assert is_red(refused) and attributes(refused)["error.type"] == "laneway.errors.BacklogFull"
    assert is_red(late) and attributes(late)["error.type"] == "laneway.errors.LeaseLost"


def test_nothing_is_left_when_it_is_switched_off(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        uninstrument()
        queue.publish("a")
        (message,) = queue.claim()
        message.complete()
        assert not message.headers
        assert not found.spans()


def test_spans_reach_a_collector(place: Place) -> None:
    """Over OTLP, to a receiver that reads them as a collector does."""
    bodies: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        thread = Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{receiver.server_port}/v1/traces")
        with recording(exporter), opened(place) as queue:
            worker = Worker(queue)

            @worker.handler("bad", ack="reject")
            async def bad(payload: int) -> None:
                raise ValueError("no")

            queue.publish(1, kind="bad")
            worker.run(until_empty=True)
            deadline = time.monotonic() + 20
            while len(bodies) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
        receiver.shutdown()
        thread.join()
    spans = {
        span.name: span
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert {"send default", "process default", "fail default"} <= set(spans)
    process = spans["process default"]
    assert process.status.code == 2, "red"
    assert process.trace_id == spans["send default"].trace_id == spans["fail default"].trace_id
    assert {a.key: a.value.string_value for a in process.attributes}["error.type"] == "ValueError"
