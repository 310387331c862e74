"""Handlers that run in processes of their own, which find them here by name."""

import ctypes
import os
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

from laneway import Defer, Fail, Message, Throttled


class Unlucky(Exception):
    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"{number}: {reason}")


def note(payload: dict[str, str], message: Message) -> None:
    text = f"{os.getpid()} {message.id} {message.attempt} {message.headers.get('h')}"
    Path(payload["file"]).write_text(text)


def lingers(payload: dict[str, str], message: Message) -> None:
    note(payload, message)
    time.sleep(60)


def segfault(payload: object) -> None:
    ctypes.string_at(0)


def exits(payload: object) -> None:
    os._exit(3)


def forks_and_exits(payload: object) -> None:
    """What it leaves behind holds all of its files."""
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os._exit(3)


def leaves(payload: object) -> None:
    raise SystemExit("not so")


def sleeps(payload: object) -> None:
    time.sleep(60)


def is_throttled(payload: float, message: Message) -> None:
    if message.headers.get("again") != "yes":
        raise Throttled(retry_after=payload)


def naps(payload: float) -> None:
    time.sleep(payload)


def terminates(payload: object) -> None:
    """A program that it has started."""
    program = subprocess.Popen(["sleep", "60"])
    program.terminate()
    try:
        assert program.wait(5) == -signal.SIGTERM
    finally:
        program.kill()


def raises(payload: int) -> None:
    raise Unlucky(payload, "again")


def steps(payload: int, message: Message) -> object:
    done = message.state_json() or 0
    if done < 2:
        return Defer(timedelta(0), state=done + 1)
    raise Fail("enough", error=ValueError("two steps"))


def state_of_bytes(payload: int, message: Message) -> object:
    return None if message.state == b"\xff" else Defer(timedelta(0), state=b"\xff")


def sleep_long(mark: str) -> None:
    """Says that it has begun by creating a file."""
    Path(mark).touch()
    time.sleep(60)


def doubled(number: int) -> dict[str, int]:
    return {"doubled": 2 * number}


def large_result(number: int) -> str:
    return "x" * 101


def tells_progress(number: int, message: Message) -> None:
    message.progress(0.5)
    message.progress(1.0, "nearly")
    time.sleep(60)
