"""What runs in a handler's process: receive a message, call the function, send the result."""

import base64
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from contextvars import copy_context
from datetime import datetime
from functools import cache, reduce
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from laneway.client.shared.error_text import rendered, said
from laneway.client.shared.message_fields import MessageFields
from laneway.client.shared.settle_items import checked_progress, error_text
from laneway.durations import to_seconds
from laneway.errors import DecodeError, InvalidPayload
from laneway.model import KEEP
from laneway.payload import encode
from laneway.to_json import plain
from laneway.worker.binding import Binding, bind
from laneway.worker.handlers import check_result, handler_in
from laneway.worker.outcomes import Defer, Fail, Throttled
from laneway.worker.telemetry.logs import handling

Reply = dict[str, Any]

READY = b"ready"
TAKEN = b"taken"
GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)


def main(pipe: Connection) -> None:
    """Runs until the worker closes the pipe. The worker handles signals for the whole group."""
    for number in GROUP_SIGNALS:
        signal.signal(number, _ignore_signal)
        signal.siginterrupt(number, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    threading.Thread(target=_exit_with_worker, daemon=True).start()
    pipe.send_bytes(READY)
    while True:
        try:
            head, state, payload = (
                json.loads(pipe.recv_bytes()),
                pipe.recv_bytes(),
                pipe.recv_bytes(),
            )
        except EOFError:
            return
        pipe.send_bytes(TAKEN)
        reply = copy_context().run(_handle, head, state, payload, pipe)
        sys.stdout.flush()
        pipe.send_bytes(json.dumps(reply).encode())


def _ignore_signal(number: int, frame: object) -> None:
    """Not SIG_IGN: programs that a handler starts would inherit it, and nobody could end them."""


def _exit_with_worker() -> None:
    """Another worker will get its messages: working on would only do harm."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


class ProcessMessage(MessageFields):
    """The message for a handler in a process of its own: it can be read, and told the progress."""

    __slots__ = ("_pipe",)

    def __init__(self, row: Any, claimed_at: datetime, until: datetime, pipe: Connection) -> None:
        super().__init__(row, claimed_at, until)
        self._pipe = pipe

    def progress(self, share: float | None, note: str | None = None) -> None:
        said = checked_progress(share, note)
        self._pipe.send_bytes(json.dumps({"what": "progress", "said": said}).encode())


def _handle(head: dict[str, Any], state: bytes, payload: bytes, pipe: Connection) -> Reply:
    row = [*head["row"], state if head["state"] else None, payload, head["spent"]]
    claimed_at, until = map(datetime.fromisoformat, head["times"])
    try:
        function, binding = _load(head["module"], head["function"])
        message = ProcessMessage(row, claimed_at, until, pipe)
        handling(message)
        try:
            placed, named = binding.arguments(message, message, None)
        except DecodeError as error:
            return {"what": "undecodable", "text": str(error)}
        with ExitStack() as entered:
            for place, values in head["carried"]:
                entered.enter_context(_taking_over(place)(values))
            result = function(*placed, **named)
            check_result(f"{head['module']}.{head['function']}", result)
            return _reply(result, head["keep"])
    except (Defer, Fail, Throttled) as outcome:
        return _reply_or_error(outcome)
    except BaseException as error:  # SystemExit too: the process is to stay
        return _error(error)


@cache
def _taking_over(place: str) -> Callable[[dict[str, str]], AbstractContextManager[None]]:
    module, _, name = place.partition(":")
    found: Callable[[dict[str, str]], AbstractContextManager[None]]
    found = getattr(import_module(module), name)
    return found


@cache
def _load(module: str, name: str) -> tuple[Callable[..., Any], Binding]:
    found = import_module(module)
    if handler := handler_in(found, name):  # of a task
        return handler.function, handler.binding
    function = reduce(getattr, name.split("."), found)
    assert callable(function)
    return function, bind(function, f"{module}.{name}")


def _reply_or_error(outcome: Defer | Fail | Throttled) -> Reply:
    try:
        return _reply(outcome)
    except Exception as error:  # a state that is no JSON
        return _error(error)


def _reply(result: object, most: int | None = None) -> Reply:
    if isinstance(result, Fail):
        return {"what": "fail", "reason": result.reason, "error": _text(result.error)}
    if isinstance(result, Defer):
        return {
            "what": "defer",
            "delay": None if result.delay is None else to_seconds(result.delay),
            "at": None if result.at is None else result.at.isoformat(),
            "state": "keep" if result.state is KEEP else _state(result.state),
            "reason": result.reason,
            "error": _text(result.error),
        }
    if isinstance(result, Throttled):
        seconds = result.retry_after.total_seconds()
        return {"what": "throttled", "retry_after": seconds, "limit": result.limit}
    return {"what": "returned", "result": None if most is None else _kept(result, most)}


def _kept(result: object, most: int) -> dict[str, str]:
    try:
        data, content_type = encode(result, most, "result")
    except InvalidPayload as error:
        return {"error": str(error), "type": type(error).__name__}
    return {"bytes": base64.b64encode(data).decode(), "type": content_type}


def _state(state: object) -> dict[str, Any]:
    if isinstance(state, bytes | bytearray | memoryview):
        return {"bytes": base64.b64encode(state).decode()}
    return {"value": plain(state)}


def _text(error: str | BaseException | None) -> str | None:
    kind, text = error_text(error)
    return text if kind is None else f"{kind}: {text}"


def _error(error: BaseException) -> Reply:
    kind = type(error)
    return {
        "what": "error",
        "module": kind.__module__,
        "type": kind.__qualname__,
        "text": said(error),
        "trace": rendered(error, error.__traceback__)[-8000:],
    }
