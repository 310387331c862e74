"""The client's spans: send, receive and settle, around its verbs, sync and async alike."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from time import perf_counter, time_ns
from typing import Any, NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from laneway.client.aio.claim import AsyncClaimVerbs
from laneway.client.aio.message import AsyncSettleVerbs
from laneway.client.aio.publish import AsyncPublishVerbs, AsyncTopic
from laneway.client.shared.message_fields import MessageFields
from laneway.client.sync.claim import ClaimVerbs
from laneway.client.sync.message import SettleVerbs
from laneway.client.sync.publish import PublishVerbs, Topic
from laneway.model import Draft

from .creation import creation_context, custom_contexts, links_of, with_context
from .instruments import (
    BATCH_COUNT,
    CHANNEL,
    KIND,
    MESSAGE_ID,
    Recorded,
    Value,
    begin,
    common,
    instruments,
    recorded,
    server_attributes,
)
from .process import LEASE_LOST, message_attributes

_SETTLES = ("complete", "defer", "fail", "give_back")


class Around(NamedTuple):
    """What a wrapped verb is called with, and what it tells the span of its result."""

    items: Any
    returned: Callable[[Any], None]


Wrapping = Callable[[Any, Any], AbstractContextManager[Around]]


@contextmanager
def _sending(verbs: Any, drafts: Sequence[Draft]) -> Iterator[Around]:
    """One span for a call; its context goes into the headers of all of its messages."""
    is_topic = isinstance(verbs, AsyncTopic | Topic)
    destination = verbs.name if is_topic else common([draft.queue for draft in drafts])
    attributes: dict[str, Value] = {}
    if len(drafts) == 1:
        attributes |= {CHANNEL: drafts[0].channel, KIND: drafts[0].kind}
    else:
        attributes[BATCH_COUNT] = len(drafts)
    links = custom_contexts(drafts)
    # Of a span whose context no message carries the producer is another one.
    kind = SpanKind.PRODUCER if len(links) < len(drafts) else SpanKind.CLIENT
    started = begin(
        "send", "send", kind, destination, attributes, server=_server(verbs), links=links
    )

    def returned(results: list[Any]) -> None:
        if len(drafts) == 1 and not is_topic and results[0].id is not None:
            started.span.set_attribute(MESSAGE_ID, str(results[0].id))

    try:
        with recorded(started, "send"):
            yield Around(with_context(drafts), returned)
    finally:
        instruments().sent.add(len(drafts), started.measured)


@contextmanager
def _settling(name: str, verbs: Any, messages: Sequence[MessageFields]) -> Iterator[Around]:
    destination = common([message.queue for message in messages])
    one = len(messages) == 1
    attributes = message_attributes(messages[0]) if one else {BATCH_COUNT: len(messages)}
    started = begin(
        name,
        "settle",
        SpanKind.CLIENT,
        destination,
        attributes,
        server=_server(verbs),
        links=links_of(messages),
        context=_parent(messages[0].headers) if one else None,
    )

    def returned(results: list[Any]) -> None:
        lost = sum(result.lost for result in results)
        if lost:
            started.fail_as(LEASE_LOST, f"{lost} of {len(results)} leases were lost")

    with recorded(started, "settle"):
        yield Around(messages, returned)


def _parent(headers: Mapping[str, Any]) -> Context | None:
    """None is the current span; without one, what belongs to a message is in its trace."""
    if trace.get_current_span().get_span_context().is_valid:
        return None
    return creation_context(headers)


def _server(verbs: Any) -> Mapping[str, Value]:
    address = getattr(verbs, "_address", None)
    return {} if address is None else server_attributes(address.url)


@contextmanager
def _receiving(verbs: Any, options: Mapping[str, Any]) -> Iterator[Around]:
    """A span only if messages came or it failed: a loop that polls would fill a trace with
    nothing."""
    queues = options.get("queues")
    names = verbs._queues if queues is None else queues
    destination = common(names) if isinstance(names, list | tuple) else None
    moment, begun = time_ns(), perf_counter()
    claimed: list[MessageFields] = []

    def started() -> Recorded:
        count = {BATCH_COUNT: len(claimed)}
        attributes = message_attributes(claimed[0]) if len(claimed) == 1 else count
        return begin(
            "receive",
            "receive",
            SpanKind.CLIENT,
            destination,
            attributes,
            server=_server(verbs),
            links=links_of(claimed),
            since=(moment, begun),
        )

    try:
        yield Around(None, claimed.extend)
    except BaseException as error:
        failed = started()
        failed.fail(error)
        failed.span.end()
        failed.end("receive")
        raise
    if not claimed:
        return
    received = started()
    received.span.end()
    received.end("receive")
    instruments().consumed.add(len(claimed), received.measured)


# Wrapping the verbs. Each pair of functions does the same for sync and async.


def _around_async(original: Any, around: Wrapping) -> Any:
    @wraps(original)
    async def verb(self: Any, items: Any, *args: Any, **options: Any) -> Any:
        if not items:
            return await original(self, items, *args, **options)
        with around(self, items) as (items, returned):
            results = await original(self, items, *args, **options)
            returned(results)
            return results

    return verb


def _around(original: Any, around: Wrapping) -> Any:
    @wraps(original)
    def verb(self: Any, items: Any, *args: Any, **options: Any) -> Any:
        if not items:
            return original(self, items, *args, **options)
        with around(self, items) as (items, returned):
            results = original(self, items, *args, **options)
            returned(results)
            return results

    return verb


def _settle_async(original: Any, name: str) -> Any:
    around = _around_async(original, partial(_settling, name))

    @wraps(original)
    async def verb(self: Any, messages: Any, *args: Any, **options: Any) -> Any:
        found, known = _listed(messages)
        return await (around if known else original)(self, found, *args, **options)

    return verb


def _settle(original: Any, name: str) -> Any:
    around = _around(original, partial(_settling, name))

    @wraps(original)
    def verb(self: Any, messages: Any, *args: Any, **options: Any) -> Any:
        found, known = _listed(messages)
        return (around if known else original)(self, found, *args, **options)

    return verb


def _claim_async(original: Any) -> Any:
    @wraps(original)
    async def verb(self: Any, *args: Any, **options: Any) -> Any:
        with _receiving(self, options) as (_, returned):
            claim = await original(self, *args, **options)
            returned(claim)
            return claim

    return verb


def _claim(original: Any) -> Any:
    @wraps(original)
    def verb(self: Any, *args: Any, **options: Any) -> Any:
        with _receiving(self, options) as (_, returned):
            claim = original(self, *args, **options)
            returned(claim)
            return claim

    return verb


def _listed(messages: Any) -> tuple[Any, bool]:
    """As a list, which can be read twice; False if the verb will refuse them."""
    found = list(messages) if isinstance(messages, Iterable) else messages
    known = isinstance(found, list) and all(isinstance(one, MessageFields) for one in found)
    return found, known


def _wrapped() -> Iterator[tuple[type, str, Any]]:
    for async_owner in (AsyncPublishVerbs, AsyncTopic):
        wrapper = _around_async(vars(async_owner)["_publish"], _sending)
        yield async_owner, "_publish", wrapper
    for owner in (PublishVerbs, Topic):
        yield owner, "_publish", _around(vars(owner)["_publish"], _sending)
    for name in _SETTLES:
        yield AsyncSettleVerbs, name, _settle_async(vars(AsyncSettleVerbs)[name], name)
        yield SettleVerbs, name, _settle(vars(SettleVerbs)[name], name)
    yield AsyncClaimVerbs, "claim", _claim_async(vars(AsyncClaimVerbs)["claim"])
    yield ClaimVerbs, "claim", _claim(vars(ClaimVerbs)["claim"])


_originals: list[tuple[type, str, Any]] = []


def wrap_verbs() -> None:
    for owner, name, wrapper in list(_wrapped()):
        _originals.append((owner, name, vars(owner)[name]))
        setattr(owner, name, wrapper)


def unwrap_verbs() -> None:
    while _originals:
        owner, name, original = _originals.pop()
        setattr(owner, name, original)
