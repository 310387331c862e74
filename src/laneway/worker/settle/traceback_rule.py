"""Which tracebacks a worker keeps with its dead letters, and what it hides in them."""

import logging
from collections.abc import Callable
from typing import Literal

from laneway.client.shared.settle_items import said
from laneway.client.shared.tracebacks import traceback_text
from laneway.errors import InvalidOption, shown

_log = logging.getLogger("laneway.worker")

TracebackRule = Literal["keep", "none"] | Callable[[str], str]
"""Keep it, do not, or a function that returns what is kept of its text."""


def checked_rule(rule: object) -> TracebackRule:
    if rule == "keep" or rule == "none" or callable(rule):
        return rule
    raise InvalidOption(f'traceback must be "keep", "none" or a function, not {shown(rule)}')


def kept_traceback(rule: TracebackRule, error: str | BaseException | None) -> str | None:
    if rule == "none":
        return None
    text = traceback_text(error)
    if text is None or rule == "keep":
        return text
    try:
        kept = rule(text)
    except Exception as failure:  # rather no traceback than one with a secret
        _log.error("the function for tracebacks failed: %s", said(failure))
        return None
    return kept if isinstance(kept, str) else None
