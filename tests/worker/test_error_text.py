"""Whatever a handler raises: showing it takes no time and no room, in logs and in dead letters."""

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from laneway import Constant, Fail, Worker
from laneway.client.shared.error_text import cut_traceback, rendered, said, traceback_text
from laneway.worker.telemetry.logs import JsonFormatter
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client

HUGE = 50_000_000


class Counted(Exception):
    """Knows how often it was asked for its text."""

    asked = 0

    def __str__(self) -> str:
        Counted.asked += 1
        return "counted"


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


E = TypeVar("E", bound=BaseException)


def raised(error: E) -> E:
    try:
        raise error
    except BaseException:
        return error


def huge() -> BaseException:
    return raised(ValueError("x" * HUGE))


def chained(explicit: bool = True) -> BaseException:
    error: BaseException = raised(Counted())
    for _ in range(3000):
        later = raised(Counted())
        if explicit:
            later.__cause__ = error
        else:
            later.__context__ = error
        error = later
    return error


def circular() -> BaseException:
    one, two = raised(Counted()), raised(Counted())
    one.__context__, two.__context__ = two, one
    return one


def wide_group() -> BaseException:
    return raised(ExceptionGroup("all", [raised(Counted()) for _ in range(10_000)]))


def deep_group() -> BaseException:
    error: Exception = Counted()
    for _ in range(500):
        error = ExceptionGroup("again", [error, Counted()])
    return raised(error)


def recursion() -> BaseException:
    def again(depth: int) -> None:
        other(depth)

    def other(depth: int) -> None:
        again(depth + 1)

    try:
        again(0)
    except RecursionError as error:
        return error
    raise AssertionError


def noted() -> BaseException:
    error = raised(ValueError("noted"))
    notes: list[Any] = ["x" * HUGE, *["note"] * 10_000, 7]
    error.__notes__ = notes
    return error


def wide_line() -> BaseException:
    scope: dict[str, object] = {}
    try:
        exec("raise ValueError('" + "x" * 1_000_000 + "')", scope)
    except ValueError as error:
        return error
    raise AssertionError


ERRORS: dict[str, Callable[[], BaseException]] = {
    "huge": huge,
    "chain of causes": chained,
    "chain of contexts": lambda: chained(False),
    "circle": circular,
    "wide group": wide_group,
    "deep group": deep_group,
    "recursion": recursion,
    "notes": noted,
    "no text": lambda: raised(Mute()),
    "wide line": wide_line,
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_as_text_has_an_end(name: str) -> None:
    error = ERRORS[name]()
    Counted.asked = 0
    text = rendered(error, error.__traceback__)
    assert len(text) < 100_000
    assert Counted.asked <= 50, "what is not shown is not rendered either"
    assert type(error).__name__ in text
    assert len(cut_traceback(text)) <= 8 * 1024


def test_a_small_error_is_shown_as_python_shows_it() -> None:
    import traceback

    def fail() -> None:
        try:
            raise LookupError("first") from KeyError("before")
        except LookupError:
            raise ValueError("second\nline")  # noqa: B904, its context is what is tested

    try:
        fail()
    except ValueError as error:
        error.add_note("a note")
        found = error
    plain = "".join(traceback.format_exception(found))

    # 3.13 has colours and carets; ours has none of them.
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.strip(" ^~")]

    assert lines(rendered(found, found.__traceback__)) == lines(plain)
    assert traceback_text(ValueError("never raised")) is None
    assert said(Mute()) == "<no text: ValueError>"


@contextmanager
def logged(formatter: logging.Formatter) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.getLogger("laneway").addHandler(handler)
    try:
        yield stream
    finally:
        logging.getLogger("laneway").removeHandler(handler)


@pytest.mark.parametrize("name", ["huge", "chain of causes", "wide group", "notes"])
@pytest.mark.parametrize("run", ["async", "thread"])
def test_what_a_handler_raises_is_logged_with_an_end(place: Place, name: str, run: str) -> None:
    @run_async
    async def check() -> None:
        async with client(place) as queue:
            worker = Worker(queue)
            retry = Constant(every=0, attempts=2)

            if run == "async":

                @worker.handler("odd", retry=retry)
                async def odd(payload: int) -> None:
                    raise ERRORS[name]()
            else:

                @worker.handler("odd", retry=retry)
                def odd_thread(payload: int) -> None:
                    raise ERRORS[name]()

            await queue.publish(1, kind="odd")
            with (
                logged(logging.Formatter("%(message)s")) as plain,
                logged(JsonFormatter()) as as_json,
            ):
                await worker.serve(until_empty=True)
            for stream in (plain, as_json):
                text = stream.getvalue()
                assert text.count("failed at attempt") == 2
                assert text.count("Traceback") >= 1
                assert len(text) < 60_000
            (letter,) = await queue.dead_letters.list()
            assert letter.error is not None and len(letter.error) <= 16_384
            assert letter.traceback is not None and len(letter.traceback) <= 8 * 1024

    check()


@run_async
async def test_a_reason_is_logged_with_an_end(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler("odd")
        async def odd(payload: int) -> Fail:
            return Fail("x" * 1_000_000)

        await queue.publish(1, kind="odd")
        with logged(logging.Formatter("%(message)s")) as stream:
            await worker.serve(until_empty=True)
        assert "gave up" in stream.getvalue()
        assert len(stream.getvalue()) < 10_000
