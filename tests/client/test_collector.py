"""Python's garbage collector is held back for a moment, and never for longer."""

import gc
import os
import threading
from collections.abc import Iterator

import pytest

from laneway.engines.collector import no_collection


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_goes_on_afterwards() -> None:
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(RuntimeError), no_collection():
        raise RuntimeError
    assert gc.isenabled()


def test_where_it_is_off_it_stays_off() -> None:
    gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_many_threads_leave_it_on() -> None:
    def hold() -> None:
        for _ in range(2000):
            with no_collection():
                pass

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()


def test_a_child_that_is_forked_meanwhile_collects() -> None:
    with no_collection():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
