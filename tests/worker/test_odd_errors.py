"""Handlers that raise what is no Exception: an error of their message, and of nothing else."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from laneway import Constant, FailedAttempt, Worker
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes


class Odd(BaseException): ...


ERRORS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "Odd": lambda: Odd("odd"),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("odd", [Odd()]),
    "CancelledError": asyncio.CancelledError,
}


@pytest.mark.parametrize("run", ["async", "thread"])
@pytest.mark.parametrize("error", ERRORS)
def test_it_is_an_error_of_its_message_alone(place: Place, run: str, error: str) -> None:
    @run_async
    async def check() -> None:
        async with client(place) as queue:
            worker = Worker(queue)

            if run == "async":

                @worker.handler("odd", retry=Constant(every=0, attempts=2))
                async def odd(payload: int) -> None:
                    raise ERRORS[error]()
            else:

                @worker.handler("odd", retry=Constant(every=0, attempts=2))
                def odd_thread(payload: int) -> None:
                    raise ERRORS[error]()

            @worker.handler("other")
            async def other(payload: int) -> None:
                await asyncio.sleep(0.3)

            bad = await queue.publish(1, kind="odd")
            good = await queue.publish(1, kind="other")
            await worker.serve(until_empty=True)
            assert await outcomes(queue, bad.id) == ["retried", "failed"]
            assert await outcomes(queue, good.id) == ["completed"]
            (letter,) = await queue.dead_letters.list()
            assert error in f"{letter.error_type} {letter.error}"

    check()


@run_async
async def test_a_strategy_or_a_hook_that_exits_has_no_say(place: Place) -> None:
    class Exits:
        def delay(self, tried: FailedAttempt) -> timedelta:
            raise SystemExit

    async with client(place) as queue:
        worker = Worker(queue, max_messages=1)

        @worker.on_error
        def exits(message: object, error: BaseException) -> None:
            raise SystemExit

        @worker.default_handler(retry=Exits())
        async def handle(payload: int) -> None:
            raise ValueError

        published = await queue.publish(1)
        await worker.serve()
        assert await outcomes(queue, published.id) == ["retried"]
