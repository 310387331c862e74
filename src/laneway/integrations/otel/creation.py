"""The creation context: the producer's span, which travels in a message's headers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link

from laneway.client.shared.message_fields import MessageFields
from laneway.model import Draft

MOST_LINKS = 100
"""Of one span; the SDK drops what is beyond 128."""


def traced(headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The headers with the current trace added, for a publish that is not instrumented.

    >>> queue.publish({"order": 1}, headers=traced())
    """
    carrier: dict[str, Any] = dict(headers or {})
    propagate.inject(carrier)
    return carrier


def creation_context(headers: Mapping[str, Any]) -> Context:
    """Starts from nothing: what happens to be current in a worker is no parent of a message."""
    texts = {key: value for key, value in headers.items() if isinstance(value, str)}
    try:
        return propagate.extract(texts, Context())
    except Exception:  # of a propagator: what a publisher wrote must not fail the handler
        return Context()


def link_to(context: Context) -> list[Link]:
    found = trace.get_current_span(context).get_span_context()
    return [Link(found)] if found.is_valid else []


def links_of(messages: Iterable[MessageFields]) -> list[Link]:
    links: list[Link] = []
    for message in messages:
        if len(links) >= MOST_LINKS:
            break
        links += link_to(creation_context(message.headers))
    return links


def custom_contexts(drafts: Sequence[Draft]) -> list[Link]:
    """Links to the contexts that the publisher put into headers itself."""
    links: list[Link] = []
    for draft in drafts:
        if draft.headers is not None and len(links) < MOST_LINKS:
            links += link_to(creation_context(json.loads(draft.headers)))
    return links


def with_context(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with the current span in their headers; those that carry a context keep it."""
    carrier = traced()
    if not carrier:
        return list(drafts)
    text = json.dumps(carrier)
    return [_with(draft, carrier, text) for draft in drafts]


def _with(draft: Draft, carrier: dict[str, Any], text: str) -> Draft:
    if draft.headers is None:
        return draft._replace(headers=text)
    headers = json.loads(draft.headers)
    if link_to(creation_context(headers)):
        return draft
    return draft._replace(headers=json.dumps(headers | carrier, ensure_ascii=False))
