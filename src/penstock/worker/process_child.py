"""What runs in a handler's process: take a message, call the function, say how it went."""

import base64
import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import datetime
from functools import cache, reduce
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from penstock.client.fields import MessageFields
from penstock.client.settlement import error_text, said
from penstock.errors import DecodeError
from penstock.model import KEEP
from penstock.plain import plain

from .binding import Binding, bind
from .outcomes import Defer, Fail

Answer = dict[str, Any]

TAKEN = b"taken"
GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(pipe: Connection) -> None:
    """Until the worker closes the pipe. Signals for the whole group are the worker's business."""
    for number in GROUP_SIGNALS:
        signal.signal(number, _leave_it_to_the_worker)
        signal.siginterrupt(number, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    threading.Thread(target=_end_with_the_worker, daemon=True).start()
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
        answer = _handle(head, state, payload)
        sys.stdout.flush()
        pipe.send_bytes(json.dumps(answer).encode())


def _leave_it_to_the_worker(number: int, frame: object) -> None:
    """Not SIG_IGN, which programs that a handler starts would inherit: nobody could end them."""


def _end_with_the_worker() -> None:
    """Its messages will be somebody else's: working on would only be in the way."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _handle(head: dict[str, Any], state: bytes, payload: bytes) -> Answer:
    row = [*head["row"], state if head["state"] else None, payload, head["spent"]]
    claimed_at, until = map(datetime.fromisoformat, head["times"])
    try:
        function, binding = _found(head["module"], head["function"])
        message = MessageFields(row, claimed_at, until)
        try:
            placed, named = binding.arguments(message, message, None)
        except DecodeError as error:
            return {"what": "undecodable", "text": str(error)}
        return _answer(function(*placed, **named))
    except (Defer, Fail) as outcome:
        return _answer_or_error(outcome)
    except BaseException as error:  # SystemExit too: the process is to stay
        return _error(error)


@cache
def _found(module: str, name: str) -> tuple[Callable[..., Any], Binding]:
    function = reduce(getattr, name.split("."), import_module(module))
    assert callable(function)
    return function, bind(function, f"{module}.{name}")


def _answer_or_error(outcome: Defer | Fail) -> Answer:
    try:
        return _answer(outcome)
    except Exception as error:  # a state that is no JSON
        return _error(error)


def _answer(result: object) -> Answer:
    if isinstance(result, Fail):
        return {"what": "fail", "reason": result.reason, "error": _text(result.error)}
    if isinstance(result, Defer):
        return {
            "what": "defer",
            "delay": None if result.delay is None else result.delay.total_seconds(),
            "at": None if result.at is None else result.at.isoformat(),
            "state": "keep" if result.state is KEEP else _state(result.state),
            "reason": result.reason,
            "error": _text(result.error),
        }
    return {"what": "returned"}


def _state(state: object) -> dict[str, Any]:
    if isinstance(state, bytes | bytearray | memoryview):
        return {"bytes": base64.b64encode(state).decode()}
    return {"value": plain(state)}


def _text(error: str | BaseException | None) -> str | None:
    kind, text = error_text(error)
    return text if kind is None else f"{kind}: {text}"


def _error(error: BaseException) -> Answer:
    kind = type(error)
    return {
        "what": "error",
        "module": kind.__module__,
        "type": kind.__qualname__,
        "text": said(error),
        "trace": "".join(traceback.format_exception(error))[-8000:],
    }
